#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check what the documents say about the sources.

    scripts/docs.py size        ARCHITECTURE.md has at most 2,500 words
    scripts/docs.py names       files and functions that documents name exist
    scripts/docs.py links       files and headings that documents link to exist;
                                with a directory: of the documents there
    scripts/docs.py variables   the table of the command and docs/COMMAND.md have
                                each environment variable that sources read
    scripts/docs.py self-test   the checks fail where they must

Each finding is one line, FILE:LINE: what is wrong. The exit status is 1 when
there is one. Of a document only words in backquotes count: `room/file.c` must
be there, `vb_name` must be a word of some source file, and of
`room/file.c:name` the file must define or declare name(). In a table's row the
cell of constants is followed by that of their file. CHANGELOG.md may name what is
gone.
"""
import os
import re
import sys
import tempfile

MOST_WORDS = 2500
DOCUMENTS = ('ARCHITECTURE.md', 'CONTRIBUTING.md', 'README.md', 'docs', 'ci')
WORD = re.compile(r'`([^`]+)`')
PATH = re.compile(r'([a-z][\w-]*(?:/[\w.-]+)*/[\w.-]+\.(?:c|h|sh|py|md))'
                  r'(?::(\w+))?(?:\(\))?$')
NAME = re.compile(r'(vb_\w+)(?:\(\))?$')


def documents(root):
    for name in DOCUMENTS:
        full = os.path.join(root, name)
        if os.path.isdir(full):
            yield from (os.path.join(name, n) for n in sorted(os.listdir(full))
                        if n.endswith('.md'))
        elif os.path.exists(full):
            yield name


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        return f.read()


def names_in_sources(root):
    names = set()
    for where, dirs, files in os.walk(root):
        if where == root:
            dirs[:] = [d for d in dirs if not d.startswith(('.', 'build'))]
        for name in files:
            if name.endswith(('.c', '.h')):
                names.update(re.findall(r'\bvb_\w+', read(where, name)))
    return names


def is_ours(root, path):
    """Other projects' files, and LAYER.sh for any layer, are not looked for."""
    placeholder = re.search(r'/[A-Z]+\.(c|h|sh|py)$', path)
    return not placeholder and os.path.isdir(
        os.path.join(root, path.split('/')[0]))


def check_word(root, word, names):
    """Return what is wrong with @word of a document, or None."""
    path, name = PATH.match(word), NAME.match(word)
    if name and name[1] not in names:
        return f'no source file has {name[1]}'
    if not path or not is_ours(root, path[1]):
        return None
    if not os.path.exists(os.path.join(root, path[1])):
        return f'there is no {path[1]}'
    # A definition, or a declaration, begins in the first column.
    if path[2] and not re.search(rf'^(?:\w.*\W)?{path[2]}\(',
                                 read(root, path[1]), re.MULTILINE):
        return f'{path[1]} has no {path[2]}()'
    return None


def check_row(root, line):
    """Yield the constants of a table's row that are not in the file which its
    last cell names: | what | `CONSTANT`, `CONSTANT` | `room/file.c` |"""
    row = re.match(r'\|.*\| ([^|]*) \| `([^`|]+)` \|$', line)
    path = row and PATH.match(row[2])
    if not path or path[2] or not os.path.exists(os.path.join(root, row[2])):
        return
    text = read(root, row[2])
    for name in re.findall(r'`([A-Z][A-Z0-9_]+)`', row[1]):
        if not re.search(rf'\b{name}\b', text):
            yield f'{row[2]} has no {name}'


def check_names(root):
    names = names_in_sources(root)
    for document in documents(root):
        for number, line in enumerate(read(root, document).split('\n'), 1):
            for why in check_row(root, line):
                yield f'{document}:{number}: {why}'
            for word in WORD.findall(line):
                why = check_word(root, word, names)
                if why:
                    yield f'{document}:{number}: {why}'


def anchor(heading):
    """Return what a link to @heading has behind the #."""
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')


def check_link(root, document, link):
    """Return what is wrong with @link of @document, or None."""
    path, _, heading = link.partition('#')
    target = os.path.join(os.path.dirname(document), path) if path else document
    if not os.path.exists(os.path.join(root, target)):
        return f'there is no {path}'
    if not heading:
        return None
    headings = re.findall(r'^#+ (.*)$', read(root, target), re.MULTILINE)
    if heading not in map(anchor, headings):
        return f'{target} has no heading {heading}'
    return None


def check_links(root):
    for document in documents(root):
        for number, line in enumerate(read(root, document).split('\n'), 1):
            for link in re.findall(r'\]\(([^)]+)\)', line):
                why = (not link.startswith('http') and
                       check_link(root, document, link))
                if why:
                    yield f'{document}:{number}: {why}'


def check_size(root):
    text = read(root, 'ARCHITECTURE.md')
    words = len(text.split())
    if words > MOST_WORDS:
        last = text.count('\n')
        yield f'ARCHITECTURE.md:{last}: {words} words, {MOST_WORDS} at most'


VARIABLE = re.compile(r'getenv\("(VERBENA_\w+)"\)')
NO_ROOMS = ('tests', 'bench', 'demo', 'lab', 'scripts', 'docs')
VARIABLE_TABLE = 'cli/commands.c'
VARIABLE_DOCUMENT = 'docs/COMMAND.md'


def variables_read(root):
    names = set()
    for where, dirs, files in os.walk(root):
        if where == root:
            dirs[:] = [d for d in dirs if d not in NO_ROOMS and
                       not d.startswith(('.', 'build'))]
        for name in files:
            if name.endswith(('.c', '.h')):
                names.update(VARIABLE.findall(read(where, name)))
    return names


def check_variables(root):
    """A variable whose name a source has as a macro is not found."""
    if not os.path.exists(os.path.join(root, VARIABLE_TABLE)):
        return
    names = variables_read(root)
    for path, row in ((VARIABLE_TABLE, r'\{ "(VERBENA_\w+)",'),
                      (VARIABLE_DOCUMENT, r'(?m)^\| `(VERBENA_\w+)` \|')):
        there = set(re.findall(row, read(root, path)))
        for name in sorted(names - there):
            yield f'{path}:1: {name} is missing, which a source reads'
        for name in sorted(there - names):
            yield f'{path}:1: no source reads {name}'


def self_test():
    """Yield what the checks say that they should not, or do not say."""
    good = {'ARCHITECTURE.md': '`a/b.c` `vb_b()` `a/b.c:turn` `x.c` `vb_`\n',
            'a/b.c': 'static int turn(void)\n{\n\tcalled();\n}\n'
                     'int vb_b(void);\n'}
    variables = {'cli/commands.c': '{ "VERBENA_A",\n',
                 'docs/COMMAND.md': '| `VERBENA_A` | x |\n'}
    reads = {'a/e.c': 'x = getenv("VERBENA_A");\n'}
    cases = [
        ({}, None),
        ({**variables, **reads}, None),
        ({**variables}, 'cli/commands.c:1: no source reads VERBENA_A'),
        ({**variables, **reads, 'a/f.c': 'getenv("VERBENA_B")'},
         'cli/commands.c:1: VERBENA_B is missing'),
        ({**variables, **reads, 'docs/COMMAND.md': ''},
         'docs/COMMAND.md:1: VERBENA_A is missing'),
        ({'ARCHITECTURE.md': 'word ' * (MOST_WORDS + 1)},
         'ARCHITECTURE.md:0: 2501 words'),
        ({'docs/X.md': '\n`a/c.c`\n'}, 'docs/X.md:2: there is no a/c.c'),
        ({'docs/X.md': '`vb_gone()`\n'}, 'docs/X.md:1: no source file has'),
        ({'docs/X.md': '`a/b.c:gone`\n'}, 'docs/X.md:1: a/b.c has no gone()'),
        ({'docs/X.md': '`a/b.c:called`\n'},
         'docs/X.md:1: a/b.c has no called()'),
        ({'docs/X.md': '| x | `A_B`, `A_C` | `a/b.c` |\n',
          'a/b.c': 'enum { A_B };\nint turn(void);\nint vb_b(void);\n'},
         'docs/X.md:1: a/b.c has no A_C'),
        ({'docs/X.md': '[x](Y.md)\n'}, 'docs/X.md:1: there is no Y.md'),
        ({'docs/X.md': '# A `b`\n[x](#a-b)\n[x](#b)\n'},
         'docs/X.md:3: docs/X.md has no heading b'),
    ]
    for change, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**good, **change}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, 'w', encoding='utf-8') as f:
                    f.write(text)
            said = [*check_size(root), *check_names(root), *check_links(root),
                    *check_variables(root)]
        if expected is None and said:
            yield f'self-test: good documents are refused: {said[0]}'
        elif expected and not any(s.startswith(expected) for s in said):
            yield f'self-test: nothing says {expected!r}, but {said}'


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    if len(sys.argv) == 3 and sys.argv[1] == 'links':
        root = sys.argv.pop()
    checks = {
        'size': lambda: check_size(root),
        'names': lambda: check_names(root),
        'links': lambda: check_links(root),
        'variables': lambda: check_variables(root),
        'self-test': self_test,
    }
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    findings = list(checks[sys.argv[1]]())
    for finding in findings:
        print(finding)
    sys.exit(bool(findings))


if __name__ == '__main__':
    main()
