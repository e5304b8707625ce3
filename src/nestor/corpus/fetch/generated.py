"""Inputs of workloads that are computed from a seed, so that no large file is kept for them.

The same kind, size and seed give the same bytes on every machine: only products of numbers drawn by
:meth:`random.Random.random`, whose sequence Python guarantees, and integers decide.
"""

import random
import struct
from collections.abc import Callable, Mapping
from typing import Final

_SYLLABLES: Final = (
    "ba", "con", "de", "er", "fi", "gra", "hu", "in", "jo", "ka", "lan", "mi", "no", "or", "per",
    "qui", "ra", "sta", "ti", "un", "ver", "wo", "ex", "ly", "zen",
)  # fmt: skip
_CLAUSES_PER_VARIABLE: Final = 4.2
"""Just below the ratio at which random formulas of three literals a clause become unsatisfiable."""


def generate(kind: str, size: int, seed: int) -> bytes:
    """Return the content of an input.

    :param kind: one of :data:`KINDS`.
    :param size: how much of it; what it counts depends on the kind.
    :raises ValueError: if there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind {kind!r} of input; there are: {', '.join(KINDS)}")
    return KINDS[kind](size, random.Random(seed))  # noqa: S311  no secret is made


def _index(draw: random.Random, count: int) -> int:
    return int(draw.random() * count)


def _words(draw: random.Random, count: int = 3000) -> list[str]:
    """Return a vocabulary."""
    return [
        "".join(_SYLLABLES[_index(draw, len(_SYLLABLES))] for _ in range(1 + _index(draw, 4)))
        for _ in range(count)
    ]


def _word(draw: random.Random, words: list[str]) -> str:
    """Return a word; the first ones of the vocabulary are much more frequent than the last."""
    place = draw.random()
    return words[int(len(words) * (place * place * place))]


def _text(size: int, draw: random.Random) -> bytes:
    """Return at least ``size`` bytes of sentences in lines and paragraphs."""
    words = _words(draw)
    lines: list[str] = []
    length = 0
    while length < size:
        line = [_word(draw, words) for _ in range(6 + _index(draw, 9))]
        if draw.random() < 0.4:
            line[_index(draw, len(line))] += ","
        if draw.random() < 0.2:
            line.append(str(_index(draw, 10 ** _index(draw, 7))))
        line[0] = line[0].capitalize()
        line[-1] += ".\n" if draw.random() < 0.1 else "."
        lines.append(" ".join(line))
        length += len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


def _image(size: int, draw: random.Random) -> bytes:
    """Return a PPM image of ``size`` by ``size`` pixels: a gradient, discs and a little noise."""
    discs = [
        (_index(draw, size), _index(draw, size), 4 + _index(draw, size // 4), _index(draw, 256))
        for _ in range(24)
    ]
    pixels = bytearray()
    for y in range(size):
        for x in range(size):
            shade = 255 * (x + y) // (2 * size)
            for left, top, radius, value in discs:
                if (x - left) ** 2 + (y - top) ** 2 < radius * radius:
                    shade = (shade + value) // 2
            noise = _index(draw, 9)
            pixels += bytes(
                ((shade + noise) & 255, (255 - shade + noise // 2) & 255, (shade * 2 + x) & 255)
            )
    return f"P6\n{size} {size}\n255\n".encode() + bytes(pixels)


def _sound(size: int, draw: random.Random) -> bytes:
    """Return a WAV file of ``size`` samples at 44.1 kHz, 16 bit, one channel: notes and noise."""
    samples: list[int] = []
    while len(samples) < size:
        step, length = 300 + _index(draw, 2400), 2000 + _index(draw, 12000)
        for i in range(length):
            # A parabola in place of a sine: it needs integers alone.
            phase = (i * step) % 65536 - 32768
            wave = phase * (32768 - abs(phase)) // 32768
            second = (i * step * 3) % 65536 - 32768
            wave += second * (32768 - abs(second)) // 98304
            samples.append(wave * (length - i) // length + _index(draw, 200) - 100)
    data = struct.pack(f"<{size}h", *samples[:size])
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 44100, 88200, 2,
        16, b"data", len(data),
    )  # fmt: skip
    return header + data


def _json(size: int, draw: random.Random) -> bytes:
    """Return a JSON array of ``size`` records."""
    words = _words(draw, 400)
    records = []
    for number in range(size):
        tags = ", ".join(f'"{_word(draw, words)}"' for _ in range(_index(draw, 6)))
        text = " ".join(_word(draw, words) for _ in range(3 + _index(draw, 12)))
        records.append(
            f'{{"id": {number}, "name": "{_word(draw, words)}", "tags": [{tags}], '
            f'"at": {{"x": {_index(draw, 10**6) / 1000}, "y": -{_index(draw, 1000)}e-3}}, '
            f'"on": {"true" if draw.random() < 0.5 else "null"}, "text": "{text}\\n\\u00e9"}}'
        )
    return ("[\n" + ",\n".join(records) + "\n]\n").encode()


def _xml(size: int, draw: random.Random) -> bytes:
    """Return an XML document of ``size`` records."""
    words = _words(draw, 400)
    records = []
    for number in range(size):
        items = "".join(
            f'<item kind="{_word(draw, words)}">{_index(draw, 1000)}</item>'
            for _ in range(_index(draw, 6))
        )
        text = " ".join(_word(draw, words) for _ in range(3 + _index(draw, 12)))
        records.append(
            f'  <record id="r{number}" name="{_word(draw, words)}">{items}\n'
            f"    <text>{text} &amp; &lt;{_word(draw, words)}&gt;</text>\n  </record>"
        )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<records>\n'
    return (head + "\n".join(records) + "\n</records>\n").encode()


def _yaml(size: int, draw: random.Random) -> bytes:
    """Return a YAML sequence of ``size`` records."""
    words = _words(draw, 400)
    records = []
    for number in range(size):
        tags = ", ".join(_word(draw, words) for _ in range(_index(draw, 5)))
        text = " ".join(_word(draw, words) for _ in range(3 + _index(draw, 9)))
        records.append(
            f"- id: {number}\n  name: {_word(draw, words)}\n  tags: [{tags}]\n"
            f'  at: {{x: {_index(draw, 1000)}, y: "{_index(draw, 1000)}"}}\n'
            f"  text: |\n    {text}\n    {_word(draw, words)}\n"
        )
    return "".join(records).encode()


def _formula(size: int, draw: random.Random) -> bytes:
    """Return a random 3-SAT formula of ``size`` variables in DIMACS form."""
    clauses = int(size * _CLAUSES_PER_VARIABLE)
    lines = [f"p cnf {size} {clauses}"]
    for _ in range(clauses):
        literals = {1 + _index(draw, size) for _ in range(3)}
        lines.append(
            " ".join(str(v if draw.random() < 0.5 else -v) for v in sorted(literals)) + " 0"
        )
    return ("\n".join(lines) + "\n").encode()


def _points(size: int, draw: random.Random) -> bytes:
    """Return lines "number x y z" of ``size`` points in the unit cube."""
    lines = [
        f"{number} " + " ".join(f"{_index(draw, 10**6) / 10**6:.6f}" for _ in range(3))
        for number in range(1, size + 1)
    ]
    return ("\n".join(lines) + "\n").encode()


def _nodes(size: int, draw: random.Random) -> bytes:
    """Return the points as TetGen's file of nodes."""
    return f"{size} 3 0 0\n".encode() + _points(size, draw)


def _sql(size: int, draw: random.Random) -> bytes:
    """Return statements that fill two tables, ``size`` rows in all, and ask about them."""
    words = _words(draw, 300)
    people = max(1, size // 5)
    lines = [
        "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city TEXT, born INT);",
        "CREATE TABLE sale(id INTEGER PRIMARY KEY, person INT, what TEXT, price REAL);",
        "BEGIN;",
    ]
    for number in range(people):
        lines.append(
            f"INSERT INTO person VALUES({number}, '{_word(draw, words)}', "
            f"'{_word(draw, words)}', {1930 + _index(draw, 80)});"
        )
    for number in range(size - people):
        lines.append(
            f"INSERT INTO sale VALUES({number}, {_index(draw, people)}, "
            f"'{_word(draw, words)} {_word(draw, words)}', {_index(draw, 10**5) / 100});"
        )
    lines += [
        "COMMIT;",
        "CREATE INDEX sale_person ON sale(person);",
        "SELECT city, count(*), round(sum(price), 2) FROM person JOIN sale ON person.id = "
        "sale.person GROUP BY city ORDER BY 3 DESC LIMIT 20;",
        "SELECT what, avg(price) FROM sale WHERE what LIKE '%an%' GROUP BY what ORDER BY what;",
        "UPDATE sale SET price = price * 1.1 WHERE person IN "
        "(SELECT id FROM person WHERE born < 1970);",
        "DELETE FROM sale WHERE price < 10;",
        "SELECT upper(name), length(city), born / 10 * 10 AS decade FROM person "
        "ORDER BY decade, name LIMIT 500;",
        "SELECT count(*) FROM sale a JOIN sale b ON a.person = b.person AND a.id < b.id "
        "WHERE abs(a.price - b.price) < 50;",
    ]
    return ("\n".join(lines) + "\n").encode()


def _html(size: int, draw: random.Random) -> bytes:
    """Return an HTML page of ``size`` sections whose paragraphs and items are not closed."""
    words = _words(draw, 400)

    def run(most: int) -> str:
        return " ".join(_word(draw, words) for _ in range(2 + _index(draw, most)))

    parts = ["<html><head><title>Page</title></head><body>"]
    for number in range(size):
        items = "".join(f"<li>{run(5)}" for _ in range(_index(draw, 6)))
        cells = "".join(f"<td align=left>{run(2)}" for _ in range(3))
        parts.append(
            f'<h{1 + number % 4} id="s{number}">{run(4)}</h{1 + number % 4}>\n'
            f"<p class=plain>{run(12)} <b>{run(2)}</b> &copy; <a href=#s{number // 2}>{run(3)}</a>"
            f"\n<p>{run(15)}<br>{run(6)}\n<ul>{items}</ul>\n<table><tr>{cells}</table>"
        )
    return ("\n".join(parts) + "\n</body></html>\n").encode()


def _source(size: int, draw: random.Random) -> bytes:
    """Return C source of ``size`` functions that includes nothing."""
    lines = ["typedef struct item { int kind; long value; struct item *next; } item;"]
    for number in range(size):
        a, b, c = (1 + _index(draw, 99) for _ in range(3))
        called = f"f{_index(draw, number)}(p, n - 1)" if number else "n"
        lines += [
            f"static long f{number}(item *p, long n)",
            "{",
            f"    long a[{a}], s = {b}; /* state {c} of {number} */",
            f"    for (long i = 0; i < n && i < {a}; i++) a[i] = (s += i * {c} ^ n) >> {a % 7};",
            "    while (p && p->next) {",
            f"        switch (p->kind % {2 + a % 5}) {{",
            f"        case 0: s += p->value * {b}; break;",
            f"        case 1: s ^= p->value << {c % 13}; /* fall through */",
            f'        default: s -= n > 0 ? {called} : "text{c}"[{c % 5}];',
            "        }",
            "        p = p->next;",
            "    }",
            f"    return s + (n ? a[n % {a}] : {c}L);",
            "}",
        ]
    lines.append(f"int main(int c, char **v) {{ return (int)f{size - 1}((item *)v, c); }}")
    return ("\n".join(lines) + "\n").encode()


def _build(size: int, draw: random.Random) -> bytes:
    """Return a build file of Ninja with ``size`` targets, each of which may need earlier ones."""
    lines = ["rule cc", "  command = cc $flags -c $in -o $out", "  description = CC $out"]
    for number in range(size):
        needed = " ".join(f"out/f{_index(draw, number)}.o" for _ in range(3 if number else 0))
        lines += [
            f"build out/f{number}.o: cc src{number % 40}/f{number}.c | {needed}",
            f"  flags = -O{number % 4} -Iinclude{_index(draw, 20)} -DN={number}",
        ]
        lines.append(f"build src{number % 40}/f{number}.c: phony")
    return ("\n".join(lines) + "\n").encode()


def _dictionary(size: int, draw: random.Random) -> bytes:
    """Return a dictionary of Hunspell: the vocabulary of the text of the same seed, with flags."""
    words = sorted(set(_words(draw)))[:size]
    flags = ("", "/A", "/B", "/AB", "/ABC")
    lines = [f"{word}{flags[_index(draw, len(flags))]}" for word in words]
    return (f"{len(lines)}\n" + "\n".join(lines) + "\n").encode()


def _lines_of_angles(size: int, draw: random.Random) -> bytes:
    """Return ``size`` lines of two places on the globe, in degrees."""
    lines = []
    for _ in range(size):
        places = [
            (_index(draw, 18000) / 100 - 90, _index(draw, 36000) / 100 - 180) for _ in range(2)
        ]
        lines.append(" ".join(f"{a:.2f} {b:.2f}" for a, b in places))
    return ("\n".join(lines) + "\n").encode()


def _expressions(size: int, draw: random.Random) -> bytes:
    """Return ``size`` lines of arithmetic expressions, and the line "quit"."""
    names = ("sin", "cos", "sqrt", "abs", "exp", "atan")

    def term(depth: int) -> str:
        if depth == 0:
            return str(_index(draw, 1000) / 10)
        if draw.random() < 0.3:
            return f"{names[_index(draw, len(names))]}({term(depth - 1)}/100)"
        return f"({term(depth - 1)} {'+-*/'[_index(draw, 4)]} {term(depth - 1)})"

    return ("\n".join(term(5) for _ in range(size)) + "\nquit\n").encode()


KINDS: Final[Mapping[str, Callable[[int, random.Random], bytes]]] = {
    "text": _text,
    "image": _image,
    "sound": _sound,
    "json": _json,
    "xml": _xml,
    "yaml": _yaml,
    "formula": _formula,
    "points": _points,
    "nodes": _nodes,
    "sql": _sql,
    "html": _html,
    "source": _source,
    "build": _build,
    "dictionary": _dictionary,
    "angles": _lines_of_angles,
    "expressions": _expressions,
}
"""What can be generated, and by which function; each says what ``size`` counts."""
