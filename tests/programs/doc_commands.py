#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run the commands of a document as its reader would, in one shell, and compare
what they print with what the document shows.

    doc_commands.py DOCUMENT [--show]

A fenced block that begins with `sh` is typed into the shell, in order. A fenced
block that begins with `text` and follows it is what the reader shall see. Further
words behind `sh`:

    again    the reader repeats the commands until they print the text
    fails    the last command fails
    install  the commands change the reader's system: here the packages are
             looked up, and make says what it would do

In a text, `...` stands for anything within a line, and a line of `...` for any
lines. Behind `text` the word `numbers` says that each number may be another one.
With --show the output is printed and nothing is compared. In a short run (`make
check`) perftest runs for five seconds at most.
"""
import os
import re
import signal
import subprocess
import sys
import time

FENCE = re.compile(r'^```(\S*)\s*(.*)$')
NUMBER = re.compile(r'\d+(?:\.\d+)?')
PATIENCE = 30       # seconds until a block marked `again` must have succeeded
LONGEST = 90        # seconds for one block
MARK = '@@doc_commands'


class Block:
    def __init__(self, line, words, text):
        self.line, self.words, self.text = line, words, text
        self.expected = None
        self.numbers = False

    def name(self):
        lines = [l for l in self.text.splitlines() if l.strip()]
        return f'line {self.line}: {lines[0] if lines else ""}'


def read_fences(path):
    """Yield (line, language, words, text) of each fenced block."""
    with open(path, encoding='utf-8') as f:
        lines = f.read().splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        at += 1
        if not fence:
            continue
        begin = at
        while lines[at] != '```':
            at += 1
        yield begin, fence[1], fence[2].split(), '\n'.join(lines[begin:at])
        at += 1


def read_blocks(path):
    blocks = []
    for line, language, words, text in read_fences(path):
        if language == 'sh':
            blocks.append(Block(line, words, text))
        elif language == 'text' and blocks and blocks[-1].expected is None:
            blocks[-1].expected = text
            blocks[-1].numbers = 'numbers' in words
        else:
            sys.exit(f'{path}:{line}: a block that no command prints')
    return blocks


# --- what is shown, and what was printed ---

def squeeze(text):
    return [' '.join(l.split()) for l in text.splitlines() if l.strip()]


def pattern_of(line, numbers):
    parts = []
    for part in line.split('...'):
        if numbers:
            part = r'\d+(?:\.\d+)?'.join(
                re.escape(p) for p in NUMBER.split(part))
        else:
            part = re.escape(part)
        parts.append(part)
    return '.*'.join(parts)


def matches(expected, got, numbers):
    """Does the text @got have the lines of @expected, in order?"""
    pattern = ''.join(
        r'(?:.*\n)*?' if line == '...'
        else pattern_of(line, numbers) + r'\n' for line in squeeze(expected))
    return re.fullmatch(pattern, ''.join(l + '\n' for l in squeeze(got)))


# --- the shell ---

class Shell:
    def __init__(self):
        self.process = subprocess.Popen(
            ['bash', '--norc'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)

    def read_until(self, mark, due):
        """Return the output up to a line "@mark STATUS", and the status."""
        got = ''
        while time.monotonic() < due:
            piece = self.process.stdout.read()
            got += (piece or b'').decode(errors='replace')
            found = re.search(rf'^{mark} (\d+)\n', got, re.MULTILINE)
            if found:
                return got[:found.start()], int(found[1])
            if self.process.poll() is not None:
                return got, self.process.returncode
            time.sleep(0.02)
        return got + '(no end within its time)\n', -1

    def run(self, text, count):
        mark = f'{MARK}{count}'
        words = f"{text}\nprintf '\\n{mark} %d\\n' $?\n"
        self.process.stdin.write(words.encode())
        self.process.stdin.flush()
        return self.read_until(mark, time.monotonic() + LONGEST)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)


def shorten(text):
    """What a short run types: a measurement takes five seconds at most, and what
    happens in the middle of it comes earlier."""
    text = re.sub(r' -D (?:[6-9]|10) ', ' -D 5 ', text)
    return re.sub(r'\(sleep 4;', '(sleep 2;', text)


def text_to_type(block):
    if 'install' not in block.words:
        quick = os.environ.get('VERBENA_QUICK', 'no') != 'no'
        return shorten(block.text) if quick else block.text
    text = re.sub(r'^sudo apt install', 'apt-get -s install', block.text,
                  flags=re.MULTILINE)
    top = os.environ['VERBENA_TOP']
    return re.sub(r'^make$', f'make -C {top} -n', text, flags=re.MULTILINE)


def judge(block, got, status):
    """Return what is wrong with the block's output, or None."""
    if (status != 0) != ('fails' in block.words):
        return f'exit status {status}'
    if block.expected is not None and not matches(block.expected, got,
                                                  block.numbers):
        return 'the document shows something else'
    return None


def play(shell, block, count):
    """Run the block, more than once if its reader would. Returns the output, and
    what is wrong with it or None."""
    due = time.monotonic() + PATIENCE
    while True:
        got, status = shell.run(text_to_type(block), count)
        wrong = judge(block, got, status)
        if not wrong or 'again' not in block.words or time.monotonic() > due:
            return got, wrong
        if '--show' in sys.argv:
            print(f'{got}### {wrong}, so again')
        time.sleep(0.5)


def report(document, block, got, wrong):
    if not wrong:
        print(f'ok {document}: {block.name()}', flush=True)
        return
    print(f'not ok {document}: {block.name()} ({wrong})')
    for title, text in (('shown', block.expected or ''), ('got', got)):
        print(f'    ---- {title}')
        for line in text.splitlines()[-60:]:
            print(f'    | {line}')
    sys.stdout.flush()


def main():
    shell, failed = Shell(), 0
    document = os.path.basename(sys.argv[1])
    show = '--show' in sys.argv
    for count, block in enumerate(read_blocks(sys.argv[1])):
        got, wrong = play(shell, block, count)
        if show:
            print(f'$$$ {block.text}\n{got}### {wrong or "good"}', flush=True)
        else:
            report(document, block, got, wrong)
        failed += wrong is not None
    shell.close()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
