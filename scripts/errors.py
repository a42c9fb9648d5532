#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make docs/ERRORS.md from the table of causes in core/why.c and core/why.h.

    scripts/errors.py write     write docs/ERRORS.md
    scripts/errors.py check     is docs/ERRORS.md what would be written, and does
                                each code have exactly one row?
    scripts/errors.py self-test the check fails where it must

Each finding is one line; the exit status is 1 when there is one.
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
DOCUMENT = 'docs/ERRORS.md'
CODE = re.compile(r'^\tWHY_(\w+) = (\d+),', re.M)
ROW = re.compile(r'^ROW\((\w+), "((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\),',
                 re.M)
GROUPS = (
    (100, 'This end refuses a request of the peer',
     'The program whose memory or queue the peer named prints these. The peer '
     'prints one of the 200s for the same request.'),
    (200, 'A request of this end has failed',
     'The program that posted the request prints these; `ibv_wc.vendor_err` '
     'of its completion is the code.'),
    (300, 'A verb is refused',
     'The call returns an errno; nothing has changed.'),
    (400, 'The connection manager',
     'Programs of librdmacm print these.'),
    (500, 'A fabric',
     'A program that opens a device `ib:` of a fabric prints these.'),
)
HEAD = """# Errors

<!-- scripts/errors.py write makes this page from core/why.c. -->

When a call is refused, or a work request fails, Verbena writes one sentence to
standard error: the object, what happened with its values, what to do, and in
brackets a code with its name.

    verbena: qp 0x12: RDMA WRITE of 8 bytes, wr_id 7: no region has lkey 0x1a2b; use the lkey of a registered region, and deregister it only when the request has completed [207 LKEY_UNKNOWN]

- `ibv_wc.vendor_err` (and `ibv_wc_read_vendor_err`) is the code of a completion
  that failed. A completion with `IBV_WC_WR_FLUSH_ERR` has the code of the error
  that came before it, or 0 if there was none, and is not told.
- Both ends tell what they know: the requester which request failed, the
  responder which key, bound or right was missing.
- The same cause at the same object is told the first time, and then the 10th,
  100th and so on, with the count.
- No call that fails is silent. What has no sentence of its own is told with the
  function's name and the errno, as 327 `REFUSED` or 320 `LIMIT`.
- `VERBENA_LOG=off` switches all messages off, `VERBENA_LOG=error` these.
  `VERBENA_LOG=info` adds what programs provoke in normal work: features that a
  device does not have, full queues, addresses without a route.

Codes do not change.
"""


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def text_of(c):
    return c.replace('\\"', '"').replace('\\\\', '\\').replace('|', '\\|')


def page(header, source):
    codes = {name: int(code) for name, code in CODE.findall(header)}
    rows = {}
    problems = []
    for name, meaning, remedy in ROW.findall(source):
        if name in rows:
            problems.append(f'core/why.c: {name} has two rows')
        if name not in codes:
            problems.append(f'core/why.c: {name} has no code')
        rows[name] = meaning, remedy
    codes.pop('NONE', None)
    problems += [f'core/why.h: {name} has no row'
                 for name in codes if name not in rows]
    if len(set(codes.values())) != len(codes):
        problems.append('core/why.h: two codes are equal')
    out = [HEAD]
    for first, title, about in GROUPS:
        out.append(f'## {first}: {title}\n\n{about}\n\n'
                   '| code | name | what it means | what to do |\n'
                   '|--:|---|---|---|')
        for code, name in sorted((c, n) for n, c in codes.items()):
            if first <= code < first + 100 and name in rows:
                meaning, remedy = map(text_of, rows[name])
                out.append(f'| {code} | `{name}` | {meaning} | {remedy} |')
        out.append('')
    return '\n'.join(out).rstrip() + '\n', problems


def check(header, source, document):
    text, problems = page(header, source)
    if text != document:
        problems.append(f'{DOCUMENT}: is not what core/why.c says: '
                        'run scripts/errors.py write')
    return problems


def self_test():
    header = '\tWHY_A = 101,\n\tWHY_B = 201,\n'
    source = 'ROW(A, "M.",\n    "do"),\nROW(B, "N \\"x\\".", "do"),\n'
    good = page(header, source)[0]
    cases = ((header, source, good, 0), (header, source, good + 'x', 1),
             (header, source.replace('ROW(B', 'ROW(C'), good, 3),
             (header.replace('201', '101'), source, good, 2))
    return [f'self-test: case {i}: {check(h, s, d)}'
            for i, (h, s, d, n) in enumerate(cases)
            if len(check(h, s, d)) != n]


def main():
    how = sys.argv[1] if len(sys.argv) == 2 else ''
    problems = []
    if how == 'write':
        text, problems = page(read('core/why.h'), read('core/why.c'))
        with open(os.path.join(ROOT, DOCUMENT), 'w', encoding='utf-8') as f:
            f.write(text)
    elif how == 'check':
        problems = check(read('core/why.h'), read('core/why.c'),
                         read(DOCUMENT))
    elif how == 'self-test':
        problems = self_test()
    else:
        sys.exit(__doc__)
    for p in problems:
        print(p)
    sys.exit(1 if problems else 0)


if __name__ == '__main__':
    main()
