// Start: read the data, show the overview, and wire tabs and policies.

const TABS = ["overview", "functions", "decisions", "overrides"];

async function start() {
  const report = await readReport();
  const { data } = report;
  document.title = `${data.program} · Nestor report`;
  document.getElementById("title").textContent = data.program;
  const versus = data.sides.slice(1).map((side) => side.name).join(" and ");
  document.getElementById("subtitle").textContent =
    `${data.problem}, ${data.question}: ${versus} against ${data.sides[0].name}`;
  const redraw = async () => {
    overrides.show();
    modules?.redraw();
    await decisions.mark();
  };
  const overrides = new Overrides(report, redraw);
  const decisions = new DecisionView(report, overrides);
  let modules = null;
  let module = null;
  let functions = null;
  let opened = -1;

  const maps = (chosen) => {
    module = chosen;
    showMaps(report, module, maps);
  };
  const openDecisions = async () => {
    if (opened === report.policy) return;
    opened = report.policy;
    await decisions.open();
  };
  const select = async (name) => {
    for (const tab of TABS) {
      const button = document.getElementById(`tab-${tab}`);
      button.setAttribute("aria-selected", String(tab === name));
      button.tabIndex = tab === name ? 0 : -1;
      document.getElementById(tab).hidden = tab !== name;
    }
    if (name === "overview") maps(module);
    if (name === "functions") {
      functions ??= functionTable(report, async (row) => {
        const place = report.functions.name[row];
        decisions.query.value = functionName(report, place).split(/[\s(<]/)[0];
        decisions.kind.value = "all";
        await select("decisions");
        await decisions.filter();
      });
      functions.redraw();
    }
    if (name === "decisions") await openDecisions();
  };
  connectTabs(select);
  connectOverrides(overrides);
  connectSides(report, async () => {
    overrides.show();
    maps(module);
    modules.redraw();
    if (opened >= 0) await openDecisions();
  });
  document.getElementById("map-up").addEventListener("click", () => maps(null));
  window.addEventListener("resize", () => {
    if (!document.getElementById("overview").hidden) maps(module);
  });
  showFigures(document.getElementById("figures"), report);
  modules = moduleTable(report, overrides, maps);
  overrides.show();
  const wanted = location.hash.slice(1);
  await select(TABS.includes(wanted) ? wanted : "overview");
  document.body.dataset.ready = String(Math.round(performance.now()));
}

/** Let tabs be chosen by clicks and by the arrow keys. */
function connectTabs(select) {
  const choose = async (name) => {
    history.replaceState(null, "", `#${name}`);
    await select(name);
  };
  TABS.forEach((name, i) => {
    const button = document.getElementById(`tab-${name}`);
    button.addEventListener("click", () => choose(name));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[event.key];
      if (!step) return;
      const next = TABS[(i + step) % TABS.length];
      document.getElementById(`tab-${next}`).focus();
      choose(next);
    });
  });
}

/** Show a button for each policy if there are two. */
function connectSides(report, changed) {
  const host = document.getElementById("sides");
  const names = report.data.sides.slice(1).map((side) => side.name);
  if (names.length < 2) return;
  const buttons = names.map((name, i) => {
    const button = element("button", "", name);
    button.addEventListener("click", () => {
      report.policy = i;
      press();
      changed();
    });
    return button;
  });
  const press = () => buttons.forEach((button, i) => {
    button.setAttribute("aria-pressed", String(i === report.policy));
  });
  press();
  host.append(...buttons);
}

start().catch((error) => {
  const message = element("p", "", `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`);
  message.setAttribute("role", "alert");
  document.querySelector("main").prepend(message);
});
