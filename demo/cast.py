#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The README's picture: a terminal in which a command runs, as an SVG file.

    cast.py record FILE.cast COMMAND...    run it in a terminal, write what it prints
    cast.py draw FILE.cast >FILE.svg       the picture
    cast.py check FILE.cast FILE.svg       is that the picture of it?

The recording is an asciicast (version 2): a JSON header, then a line for each
piece of output with its time. The same recording gives the same picture. The
animation is SVG's own (SMIL), plays once, and ends in the picture that a viewer
without animation shows.
"""
import json
import os
import pty
import re
import struct
import sys
import time
from fcntl import ioctl
from html import escape
from select import select
from termios import TIOCSWINSZ

COLUMNS, ROWS = 92, 28
LONGEST = 0.6       # seconds that nothing changes in the picture
PLAYS = 20          # seconds that the whole of a longer recording plays
FRAME = 0.5         # seconds between two states of one line
WIDTH, HEIGHT, MARGIN = 7.83, 17, 14    # of a character; of the frame
OVERWRITTEN = re.compile(r'\r[^\r\n]*(?=\r[^\n])')
CONTROL = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')


def pieces(terminal):
    """Yield what is printed, about five times a second, without the lines that
    others have overwritten by then."""
    ended = False
    while not ended:
        select([terminal], [], [])
        text, until = b'', time.monotonic() + 0.2
        while not ended and select([terminal], [], [],
                                   max(0, until - time.monotonic()))[0]:
            try:
                text += os.read(terminal, 65536)
            except OSError:     # the command has ended
                ended = True
        if text:
            yield OVERWRITTEN.sub('', text.decode(errors='replace'))


def record(path, command):
    """Run the command in a terminal of its own; return its status."""
    begin = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ['TERM'] = 'xterm'    # ninja has one line for its progress
        os.execvp(command[0], command)
    ioctl(terminal, TIOCSWINSZ, struct.pack('HHHH', ROWS, COLUMNS, 0, 0))
    with open(path, 'w', encoding='utf-8') as f:
        header = {'version': 2, 'width': COLUMNS, 'height': ROWS,
                  'title': ' '.join(command)}
        print(json.dumps(header), file=f)
        for text in pieces(terminal):
            sys.stdout.write(text)
            print(json.dumps([round(time.monotonic() - begin, 2), 'o', text]),
                  file=f)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Terminal:
    """Rows of text with the times at which each of them changed."""

    def __init__(self):
        self.now, self.column = 0.0, 0
        self.rows = [[(0.0, '')]]

    def put(self, text):
        at, row = self.rows[-1][-1][0], self.rows[-1]
        shown = row[-1][1]
        shown = shown[:self.column].ljust(self.column) + text + \
            shown[self.column + len(text):]
        self.column += len(text)
        # A line that changes all the time shows some of its states.
        if len(row) > 1 and self.now - at < FRAME:
            row[-1] = (at, shown)
        else:
            row.append((self.now, shown))

    def write(self, text):
        for part in re.split(r'(\r|\n)', CONTROL.sub('', text)):
            if part == '\n':
                self.rows.append([(self.now, '')])
                self.column = 0
            elif part == '\r':
                # What ninja writes next is a whole line.
                self.column = 0
            elif part:
                if self.column == 0 and self.rows[-1][-1][1]:
                    self.put(part.ljust(COLUMNS))
                    self.column = len(part)
                else:
                    self.put(part)


def play(path):
    """The terminal after the recording, by the picture's clock."""
    terminal, before = Terminal(), 0.0
    with open(path, encoding='utf-8') as f:
        header, *events = map(json.loads, f)
    speed = max(1, events[-1][0] / PLAYS)
    terminal.write('$ ')
    for letter in header['title']:
        terminal.now += 0.08
        terminal.write(letter)
    terminal.write('\n')
    for when, _, text in events:
        terminal.now += min((when - before) / speed, LONGEST)
        before = when
        terminal.write(text)
    while terminal.rows and not terminal.rows[-1][-1][1].strip():
        terminal.rows.pop()
    return terminal


def states(row, end):
    """(from, to, text) of each state of a row that shows anything."""
    for i, (begin, text) in enumerate(row):
        until = row[i + 1][0] if i + 1 < len(row) else end
        if text.strip() and (until is None or until > begin):
            yield begin, until, text.rstrip()[:COLUMNS]


def draw_row(at, row):
    y = MARGIN + HEIGHT * at + HEIGHT * 0.8
    for begin, until, text in states(row, None):
        if until is None:
            base, animation = '', f'to="hidden" begin="0s" end="{begin:.2f}s"'
        else:
            base = ' visibility="hidden"'
            animation = f'to="visible" begin="{begin:.2f}s" end="{until:.2f}s"'
        yield (f'<text x="{MARGIN}" y="{y:.1f}"{base}>{escape(text, False)}'
               f'<set attributeName="visibility" {animation}/></text>')


def scroll(rows, duration):
    """How far the rows have moved up at which time, in one animation."""
    times, places = ['0'], ['0 0']
    for at, row in enumerate(rows[ROWS:], 1):
        times.append(f'{min(row[0][0] / duration, 1):.4f}')
        places.append(f'0 {-at * HEIGHT}')
    return (f'<animateTransform attributeName="transform" type="translate" '
            f'calcMode="discrete" dur="{duration:.2f}s" fill="freeze" '
            f'keyTimes="{";".join(times)}" values="{";".join(places)}"/>')


def draw(path):
    terminal = play(path)
    rows, duration = terminal.rows, terminal.now
    shown = min(len(rows), ROWS)
    width, height = COLUMNS * WIDTH + 2 * MARGIN, shown * HEIGHT + 2 * MARGIN
    end = -HEIGHT * (len(rows) - shown)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} '
        f'{height}" width="{width:.0f}" height="{height}" font-size="13" '
        f'font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace">',
        '<title>make demo, in a terminal</title>',
        '<rect width="100%" height="100%" rx="8" fill="#1c2128"/>',
        f'<svg y="{MARGIN}" height="{height - 2 * MARGIN}" '
        f'width="100%"><g transform="translate(0 {-MARGIN})">',
        f'<g fill="#d6dde4" xml:space="preserve" transform="translate(0 {end})">']
    if len(rows) > shown:
        lines.append(scroll(rows, duration))
    for at, row in enumerate(rows):
        lines += draw_row(at, row)
    return '\n'.join(lines + ['</g></g></svg>', '</svg>', ''])


def main():
    if len(sys.argv) > 3 and sys.argv[1] == 'record':
        return record(sys.argv[2], sys.argv[3:])
    if len(sys.argv) == 3 and sys.argv[1] == 'draw':
        sys.stdout.write(draw(sys.argv[2]))
        return 0
    if len(sys.argv) == 4 and sys.argv[1] == 'check':
        with open(sys.argv[3], encoding='utf-8') as f:
            if f.read() == draw(sys.argv[2]):
                return 0
        print(f'{sys.argv[3]} is not the picture of {sys.argv[2]}: '
              f'demo/cast.py draw {sys.argv[2]} >{sys.argv[3]}')
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
