"""What the names of perf's events mean; names that are not known here mean nothing."""

import re
from typing import Final

_COLUMNS: Final = (
    (
        r"cycles|cpu-cycles|cpu-clock|cpu_clk_unhalted\.(thread|core)(_p)?|ls_not_halted_cyc",
        "cycles",
    ),
    (
        r"branch-misses|br_misp_retired\.(all_branches|cond|conditional)\w*|ex_ret_brn_misp",
        "mispredicts",
    ),
    (
        r"(LLC-load-|LLC-store-|LLC-|cache-)misses|mem_load(_uops)?_retired\.l3_miss"
        r"|longest_lat_cache\.miss",
        "llc_misses",
    ),
    (
        r"dTLB(-load|-store)?-misses|[di]tlb(_load|_store)?_misses\.walk_completed\w*"
        r"|mem_inst_retired\.stlb_miss_\w+|ls_l1_d_tlb_miss\.all_l2_miss",
        "tlb_misses",
    ),
)
_BRANCHES: Final = r"branches|branch-instructions|br_inst_retired\.\w+|ex_ret_brn(_tkn)?"


def column_of(event: str) -> str | None:
    """Return the column that counts an event; None if none does."""
    return next((name for form, name in _COLUMNS if _is(form, event)), None)


def paces(event: str) -> bool:
    """Tell whether samples of an event are as dense as branches, or cycles, are.

    So are those of an event that the text does not name.
    """
    return not event or column_of(event) == "cycles" or _is(_BRANCHES, event)


def _is(form: str, event: str) -> bool:
    return re.fullmatch(form, event, re.IGNORECASE) is not None
