#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that headers say to clang which locks their functions need.

    scripts/locks.py check       every function that a header of ROOMS declares
                                 and whose comment speaks of a lock, or that is
                                 given a queue pair, has an annotation, and so
                                 has every function of a transport that is
                                 given a queue pair
    scripts/locks.py self-test   the check fails where it must

An annotation is a macro of base/sync.h: VB_REQUIRES, VB_EXCLUDES, VB_ACQUIRE,
VB_RELEASE or VB_TRY_ACQUIRE. clang's -Wthread-safety (layer `clang` of
scripts/check.sh) checks callers by it; this script sees to it that none is
forgotten. A comment counts for the declaration that follows it. A comment that
another comment follows counts for all declarations up to the next blank line,
and one that a blank line follows up to the next one of that kind; the comment
at the top of a header counts for none. clang takes no annotation for pointers
to functions, so those of struct vb_transport_ops are looked at where they are
defined.

Each finding is one line, FILE:LINE: what is wrong. The exit status is 1 when
there is one.
"""
import os
import re
import sys
import tempfile

ROOMS = ('core', 'ib', 'iwarp', 'near', 'link', 'engine')
ANNOTATION = re.compile(
    r'\bVB_(REQUIRES|EXCLUDES|ACQUIRE|RELEASE|TRY_ACQUIRE)\s*\(')
LOCK = r'(?:[\w>.()*-]*(?:lock|drive|moderation)|(?:\w+->)?[rt]x)'
SPEAKS = re.compile(
    rf'\bunder (?:its |qp->|peer->|the )?(?:drive|lock|rx|tx)\b'
    rf'|\bcallers?(?: of \w+(?: \w+)?)? holds? (?:the )?{LOCK}\b'
    rf'|\bwith (?:the )?{LOCK} (?:held|locked)\b'
    rf'|\bTakes(?: and releases)? {LOCK}\b'
    rf'|\b(?:must|does) not hold {LOCK}\b'
    rf'|\b{LOCK} is held\b', re.I)
TRANSPORT = re.compile(r'struct vb_transport_ops \w+ = \{(.*?)\n\};', re.S)
QUEUE_PAIR = re.compile(r'\bstruct vb_qp \*(?!\*)')

# Functions without an annotation, and why.
HIDDEN = 'this header does not show the structure that holds the lock'
PART = 'it is given a part of the queue pair, which does not know the whole'
NONE = 'it needs no lock'
EITHER = 'the lock of a queue pair, if there is one'
EXEMPT = {
    'vb_sq_end': PART,
    'vb_rq_take': PART,
    'vb_ring_answer': HIDDEN,
    'vb_ring_begin': HIDDEN,
    'vb_flow_steer': HIDDEN,
    'vb_engine_begin_posted': HIDDEN,
    'vb_near_mark': HIDDEN,
    'vb_near_is_past': HIDDEN,
    'vb_near_settle_qp': NONE,
    'vb_nq': NONE,
    'vb_eq': NONE,
    'vb_qp_port': NONE,
    'vb_qp_state_name': NONE,
    'vb_tag_owns_sends': NONE,
    'vb_cma': EITHER,
}


def blanked(text):
    """Return @text with strings and preprocessor lines replaced by blanks."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match[0])

    text = re.sub(r'"(\\.|[^"\\\n])*"', blank, text)
    return re.sub(r'^[ \t]*#(\\\n|[^\n])*', blank, text, flags=re.M)


def items(text):
    """Yield (kind, first, behind, words) for the comments, the blank lines and
    the declarations at file scope, in their order. A body is left out."""
    text = blanked(text)
    at = depth = 0
    begin = None
    while at < len(text):
        if text.startswith('/*', at):
            behind = text.index('*/', at) + 2
            if depth == 0 and begin is None:
                words = ' '.join(text[at + 2:behind - 2].replace('*', ' ')
                                 .split())
                yield 'comment', at, behind, words
            at = behind
            continue
        c = text[at]
        if c == '{':
            if depth == 0 and begin is not None:
                yield 'code', begin, at, text[begin:at]
            depth += 1
        elif c == '}':
            depth -= 1
            begin = None
        elif depth == 0 and c == ';':
            if begin is not None:
                yield 'code', begin, at, text[begin:at]
            begin = None
        elif depth == 0 and c == '\n' and begin is None:
            if text.startswith('\n', at + 1):
                yield 'blank', at, at, ''
        elif depth == 0 and begin is None and not c.isspace():
            begin = at
        at += 1


def declaration(code):
    """Return (name, parameters, annotated) of a function, or None."""
    code = re.sub(r'/\*.*?\*/', ' ', code, flags=re.S)
    head = re.sub(r'\bVB_[A-Z_]+(\s*\([^()]*(\([^()]*\)[^()]*)*\))?', ' ', code)
    match = re.match(r'[\w\s*]*?\b(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)', head)
    if not match or match[1].startswith('_') or 'typedef' in head:
        return None
    return match[1], match[2], bool(ANNOTATION.search(code))


def speakers(all_items):
    """Yield (declaration, where, does a comment for it speak of a lock)."""
    section = block = own = begun = False
    for i, (kind, first, _, words) in enumerate(all_items):
        after = all_items[i + 1][0] if i + 1 < len(all_items) else ''
        if kind == 'comment':
            speaks = bool(SPEAKS.search(words))
            if after == 'blank':
                section = speaks and begun
            elif after == 'comment':
                block = speaks
            else:
                own = speaks
        elif kind == 'blank':
            block = own = False
        else:
            begun = True
            found = declaration(words)
            if found:
                yield found, first, section or block or own
            own = False


def check_header(root, path, used):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        text = f.read()
    for (name, parameters, annotated), at, speaks in speakers(
            list(items(text))):
        needs = speaks or QUEUE_PAIR.search(parameters)
        if not needs or annotated:
            continue
        if name in EXEMPT:
            used.add(name)
            continue
        line = text.count('\n', 0, at) + 1
        why = ('its comment speaks of a lock' if speaks else
               'it is given a queue pair')
        yield f'{path}:{line}: {name}() has no VB_REQUIRES or the like: {why}'


def check_transports(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        text = f.read()
    given = {name for table in TRANSPORT.findall(text)
             for name in re.findall(r'\.\w+ = (\w+)', table)}
    if not given:
        return
    for kind, first, _, words in items(text):
        found = declaration(words) if kind == 'code' else None
        if (found and found[0] in given and QUEUE_PAIR.search(found[1]) and
                not found[2]):
            line = text.count('\n', 0, first) + 1
            yield (f'{path}:{line}: {found[0]}() has no VB_REQUIRES: '
                   'a transport is called under drive')


def check(root, exempt=None):
    used = set()
    for room in ROOMS:
        for name in sorted(os.listdir(os.path.join(root, room))):
            if name.endswith('.h'):
                yield from check_header(root, f'{room}/{name}', used)
            elif name.endswith('.c'):
                yield from check_transports(root, f'{room}/{name}')
    for name in sorted(set(EXEMPT if exempt is None else exempt) - used):
        yield f'scripts/locks.py:1: {name}() needs no exemption any more'


def self_test():
    """Yield what the check says that it should not, or does not say."""
    cases = [
        ('/* Send. The caller holds qp->drive. */\nvoid f(int a);\n', True),
        ('/* Send. The caller holds qp->drive. */\nvoid f(struct q *q)\n'
         '\tVB_REQUIRES(q->drive);\n', False),
        ('/* Send, under drive. */\nint f(int a);\n', True),
        ('/* Takes a->lock. */\nint f(int a);\n', True),
        ('/* Takes a part of it. */\nint f(int a);\n', False),
        ('/* The caller holds no lock. */\nint f(int a);\n', False),
        ('/* With rx held. */\nint f(int a);\n', True),
        ('/* A call with qp->drive held. */\nint f(int a);\n', True),
        ('/* x.c; the caller holds n->rx */\n/* Go on. */\nint g(void)\n'
         '\tVB_REQUIRES(rx);\n/* Go. */\nint f(int a);\n', True),
        ('/* x.c; the caller holds n->rx */\n/* Go on. */\n\nint f(int a);\n',
         False),
        ('int g(int a);\n/* What others call, under drive. */\n\n/* Go. */\n'
         'int f(int a);\n', True),
        ('/* Under drive. */\n\n/* Go. */\nint f(int a);\n', False),
        ('/* Go on. */\nint f(const struct vb_qp *qp);\n', True),
        ('/* Go on. */\nint f(struct vb_qp **qp);\n', False),
        ('static inline int f(const struct vb_qp *qp)\n{\n\treturn 1;\n}\n',
         True),
        ('static inline int f(struct vb_qp *qp) VB_REQUIRES(qp->drive)\n{\n'
         '\treturn g(qp);\n}\n', False),
        ('struct s {\n\t/* with lock held */\n\tvoid (*f)(struct vb_qp *qp);\n'
         '};\n', False),
    ]
    for text, bad in cases:
        with tempfile.TemporaryDirectory() as root:
            for room in ROOMS:
                os.mkdir(os.path.join(root, room))
            with open(os.path.join(root, 'core/a.h'), 'w',
                      encoding='utf-8') as f:
                f.write('/* A header. */\n#ifndef A\n\n' + text + '\n#endif\n')
            said = list(check(root, {}))
        if bad != any(' f() has no ' in line for line in said):
            yield f'self-test: {text!r} gives {said}'
    ops = 'const struct vb_transport_ops o = {\n\t.recv = f,\n};\n'
    for text, bad in [
        ('static void f(struct vb_qp *qp)\n{\n\tg();\n}\n', True),
        ('static void f(struct vb_adapter *a)\n{\n\tg();\n}\n', False),
        ('static void f(struct vb_qp *qp)\n\tVB_REQUIRES(qp->drive)\n{\n'
         '\tg();\n}\n', False),
    ]:
        with tempfile.TemporaryDirectory() as root:
            for room in ROOMS:
                os.mkdir(os.path.join(root, room))
            with open(os.path.join(root, 'ib/a.c'), 'w',
                      encoding='utf-8') as f:
                f.write(text + '\n' + ops)
            said = list(check(root, {}))
        if bad != any(' f() has no ' in line for line in said):
            yield f'self-test: {text!r} of a transport gives {said}'
    with tempfile.TemporaryDirectory() as root:
        for room in ROOMS:
            os.mkdir(os.path.join(root, room))
        if not any('g() needs no exemption' in line
                   for line in check(root, {'g': ''})):
            yield 'self-test: nothing says that an exemption is not needed'


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    checks = {'check': lambda: check(root), 'self-test': self_test}
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    findings = list(checks[sys.argv[1]]())
    for finding in findings:
        print(finding)
    sys.exit(bool(findings))


if __name__ == '__main__':
    main()
