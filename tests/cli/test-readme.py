"""tests/cli/test-readme.py FORESHARD SOURCE MPI [--update] - the README and the pages of docs/ are true.

Every `foreshard` command in them, run in its order in one folder a page, ends with status 0, leaves the files
that -o, --trace and --save name, and prints what stands indented below it: from its first line on all of it, empty
lines apart, but where a line of three dots says that lines are left out. What the text says in words is held by CLAIMS; links by
tests/style/pages.py. MPI, yes or no: whether `foreshard run` can run here.

What a command of HELD_ELSEWHERE prints another test holds, which does the same for reasons of its own.

--update writes the lines anew, each as the likest that is printed now; read the difference, and the words around
it."""
import difflib
import glob
import json
import operator
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

PAGES = ('README.md', 'docs/coverage.md', 'docs/classroom.md', 'docs/capacity.md', 'docs/parallelism.md',
         'docs/own-run.md', 'docs/own-network.md', 'docs/hugging-face.md', 'docs/validation.md',
         'docs/pytorch/differences.md')
ONE_NODE = 'gpt2-xl -n 8 --cluster a100-node --param-dtype bf16'
XL = ONE_NODE + ' --micro-batch 2'  # with one sequence the step waits for the host
PAPER = '--cluster a100-roce --flavour fsdp1 --param-dtype bf16 --checkpointing full'
# What is said, and why it is so: a figure of one prediction against a multiple of another's.
CLAIMS = (
    ('every sharding after none lowers the peak',
     'gpt2-xl -n 8 --cluster a100-node --sharding none', 'peak_allocated_bytes', '>', 2,
     'gpt2-xl -n 8 --cluster a100-node --sharding grad-op'),
    ('full moves half as many bytes again as grad-op',
     'gpt2-xl -n 8 --cluster a100-node', 'comm.all_gather.bytes', '>', 1.9,
     'gpt2-xl -n 8 --cluster a100-node --sharding grad-op'),
    ('one unit takes more memory than twice what blocks take', XL + ' --wrap whole', 'peak_reserved_bytes', '>', 2, XL),
    ('one unit hides nothing', XL + ' --wrap whole', 'comm.all_gather.exposed_ms', '>', 5, XL),
    ('prefetch costs no memory', XL + ' --backward-prefetch none', 'peak_reserved_bytes', '==', 1, XL),
    ('prefetch saves time', XL + ' --backward-prefetch none', 'step_ms', '>', 1.1, XL),
    ('checkpointing leaves less than a third of the memory',
     ONE_NODE + ' --micro-batch 8', 'peak_reserved_bytes', '>', 3, ONE_NODE + ' --micro-batch 8 --checkpointing full'),
    ('checkpointing costs about a fifth more time',
     ONE_NODE + ' --micro-batch 8 --checkpointing full', 'step_ms', '<', 1.25, ONE_NODE + ' --micro-batch 8'),
    ('without a limiter the same is allocated', 'gpt-175b -n 512 %s --limit-all-gathers 0' % PAPER,
     'peak_allocated_bytes', '<', 1.001, 'gpt-175b -n 512 ' + PAPER),
    ('without a limiter much more is reserved', 'gpt-175b -n 512 %s --limit-all-gathers 0' % PAPER,
     'peak_reserved_bytes', '>', 1.5, 'gpt-175b -n 512 ' + PAPER),
    ('a loss read after backward costs time', XL + ' --clip 1 --host-reads loss', 'step_ms', '>', 1.05,
     XL + ' --clip 1'),
    ('reads cost no memory', XL + ' --clip 1 --host-reads both', 'peak_reserved_bytes', '==', 1, XL + ' --clip 1'),
    ('offloaded activations cost no time', ONE_NODE + ' --micro-batch 4 --checkpointing full --offload activations',
     'step_ms', '<', 1.01, ONE_NODE + ' --micro-batch 4 --checkpointing full'),
    ('an offloaded optimizer costs much', ONE_NODE + ' --micro-batch 4 --checkpointing full --offload optimizer',
     'step_ms', '>', 1.5, ONE_NODE + ' --micro-batch 4 --checkpointing full'),
    ('sixteen times the batch takes the same step, where all is waiting',
     'gpt2-xl -n 16 --cluster two-nodes-ethernet --param-dtype bf16 --micro-batch 16', 'step_ms', '<', 1.02,
     'gpt2-xl -n 16 --cluster two-nodes-ethernet --param-dtype bf16'),
    ('T5-11B: twice the batch at nearly the same step', 't5-11b -n 512 %s --micro-batch 2' % PAPER,
     'step_ms', '<', 1.1, 't5-11b -n 512 ' + PAPER),
    ('GPT-175B scales from 128 to 512 GPUs', 'gpt-175b -n 512 ' + PAPER, 'tflops_per_gpu', '>', 0.97,
     'gpt-175b -n 128 ' + PAPER),
)
HELD_ELSEWHERE = {  # each takes a minute of two cores; by tests/validation/test-validate.c
    'foreshard validate --brief tests/validation/train_*.csv',
}
LEFT_OUT = '...'
SHARED = ('tests', 'models')  # folders of the source that each page's folder has
COMPARE = {'<': operator.lt, '>': operator.gt, '==': operator.eq}


class Command:
    """A command of a page, the file that > names, and the lines that it is said to print: (number of the line, text)."""

    def __init__(self, words):
        self.words, self.into = (words[:-2], words[-1]) if words[-2] == '>' else (words, None)
        self.said = []


def commands(lines):
    """Indented lines that begin with foreshard or $ foreshard; a backslash at the end goes on in the next
    line. What follows one that began with a dollar, indented too, is what it prints."""
    found, quoting, joined = [], False, ''
    for number, line in enumerate(lines):
        if joined:
            text = joined + ' ' + line.strip()
        elif line.startswith('    '):
            text = line[4:]
        else:
            quoting = False
            continue
        joined = text[:-1].rstrip() if text.endswith('\\') else ''
        if joined:
            continue
        match = re.match(r'(\$ )?(foreshard .*)', text)
        if match:
            quoting = match.group(1) is not None
            words = shlex.split(match.group(2), comments=True)
            if not re.search(r'[A-Z]{4,}', ' '.join(words)):  # PLAN, NETWORK: a form, no command
                found.append(Command(words))
        elif quoting and text.strip():
            found[-1].said.append((number, text.strip()))
    return found


def outputs(words):
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word in ('-o', '--trace', '--save')]


def first_untrue(said, printed):
    """(Number of the line, complaint) of the first line that is not printed behind the one before it; None: all
    are, and nothing else between them and behind them where no dots stand."""
    at, left_out = 0, True
    for number, text in said:
        if text == LEFT_OUT:
            left_out = True
            continue
        while left_out and at < len(printed) and printed[at] != text:
            at += 1
        if at == len(printed) or printed[at] != text:
            return number, 'is not printed%s: %s' % ('' if left_out else ' here', text)
        at, left_out = at + 1, False
    if said and at < len(printed) and not left_out:
        return said[-1][0], 'is not the last that is printed'
    return None


def likeness(text, line):
    """Of 0 to 3: words that are equal, words that are equal but for their numbers, and what they begin with."""
    words, others = text.split(), line.split()
    if not others:
        return 0
    form = [[re.sub(r'\d+(\.\d+)?', '#', word) for word in row] for row in (words, others)]
    shared = [difflib.SequenceMatcher(None, *rows, autojunk=False).ratio() for rows in ((words, others), form)]
    return sum(shared) + (words[0] == others[0]) if shared[1] >= 0.5 else 0


def anew(said, printed):
    """(Number of the line, which of the printed lines is likest to it), in their order: the choice whose
    likenesses add up to most. A line that is like none is left out."""
    best = [(0, None)] * (len(printed) + 1)  # of the lines before the i-th
    for number, text in said:
        taken, before = best, best[0]
        best = [before]
        for i, line in enumerate(printed):
            like = likeness(text, line)
            with_it = (taken[i][0] + like, (number, i, taken[i][1])) if like else (0, None)
            best.append(max(best[i], taken[i + 1], with_it, key=lambda choice: choice[0]))
    chain, chosen = best[-1][1], []
    while chain:
        chosen.insert(0, chain[:2])
        chain = chain[2]
    return chosen


def write_anew(said, printed, lines):
    """Puts what is printed now in the place of each line, and dots where lines are left out; returns what is
    said then."""
    kept = [(number, text) for number, text in said if text != LEFT_OUT]
    for number, text in said:
        if text == LEFT_OUT:
            lines[number] = None
    bare = [line.strip() for line in printed]
    chosen, last, now = dict(anew(kept, printed)), None, []
    for number, text in kept:
        at = chosen.get(number)
        if at is None:
            now.append((number, text))
            continue
        dots = last is not None and at > last + 1
        lines[number] = ('    ' + LEFT_OUT + '\n' if dots else '') + '    ' + printed[at]
        now += [(number, LEFT_OUT)] * dots + [(number, bare[at])]
        last = at
    if last is not None and last + 1 < len(printed):
        number = kept[-1][0]
        lines[number] += '\n    ' + LEFT_OUT
        now.append((number, LEFT_OUT))
    return now


def check_said(command, printed, lines, update):
    """Complaints; with update, lines are changed for those that are printed in their place."""
    printed = [line.rstrip() for line in printed.split('\n') if line.strip()]
    bare = [line.strip() for line in printed]
    if update and first_untrue(command.said, bare):
        command.said = write_anew(command.said, printed, lines)
    untrue = first_untrue(command.said, bare)
    return ['line %d %s' % (untrue[0] + 1, untrue[1])] if untrue else []


def check_update():
    """A column more, a row less said than printed, and a sentence that is broken elsewhere."""
    old = """\
    $ foreshard choose x
         GPUs   step
      1    64  19.479
      3   512  19.733
    most is lost to inter-node
      network"""
    now = """\
all of these with --sharding full
     GPUs   step   price
  1    64  20.100   1.25
  2   128  19.990   1.30
  3   512  19.744   1.40
most is lost to
  inter-node network"""
    expected = """\
    $ foreshard choose x
         GPUs   step   price
      1    64  20.100   1.25
    ...
      3   512  19.744   1.40
    most is lost to
      inter-node network"""
    lines = old.split('\n')
    wrong = check_said(commands(lines)[0], now, lines, True)
    return wrong + ([] if '\n'.join(lines) == expected else lines)


def check_left_out():
    """What stands there is all, or dots say what is not."""
    printed = ['a', 'b', 'c', 'd']
    true = (['a', 'b', 'c', 'd'], ['a', LEFT_OUT, 'd'], ['c', 'd'], ['a', LEFT_OUT], [])
    untrue = (['a', 'd'], ['b', 'd'], ['a', 'b'], ['a', LEFT_OUT, 'e'], ['d', LEFT_OUT, 'c'])
    wrong = [said for said in true if first_untrue(list(enumerate(said)), printed)]
    return wrong + [said for said in untrue if not first_untrue(list(enumerate(said)), printed)]


def expand(word, folder):
    """As a shell would: the files that a pattern names, or the word itself."""
    found = sorted(glob.glob(word, root_dir=folder)) if '*' in word else []
    return found or [word]


def cannot_run(words, lost, mpi):
    """Why a command cannot run on this machine; empty: it can."""
    if 'cuda' in words:
        return 'needs a GPU'
    if (words[1] in ('run', 'calibrate', 'rehearse') and not mpi) or lost & set(words):
        return 'needs Open MPI'
    if words[1] in ('plot', 'report') and not shutil.which('gnuplot'):
        return 'needs gnuplot'
    return ''


def run_once(program, words, arguments, folder, known):
    """What a command does; one that writes no file and reads none of its page's prints the same on each page."""
    made = [name for name in os.listdir(folder) if name not in SHARED]
    reads = any(name in word for name in made for word in arguments)
    is_known = not outputs(words) and not reads and words[1] not in ('run', 'calibrate', 'rehearse')
    done = known.get(tuple(arguments)) if is_known else None
    if not done:
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if is_known:
        known[tuple(arguments)] = done
    return done


def run_page(tap, program, source, page, mpi, update, known):
    path = os.path.join(source, page)
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    listed = commands(lines)
    if len(listed) < 4:
        tap.case(page + ': commands are found', ['only %d' % len(listed)])
    with tempfile.TemporaryDirectory() as folder:
        for name in SHARED:
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        lost = set()  # files that only a real run makes
        for command in listed:
            words, name = command.words, page + ': ' + ' '.join(command.words)
            if ' '.join(words) in HELD_ELSEWHERE and not update:
                continue
            why = cannot_run(words, lost, mpi)
            if why:
                lost.update(outputs(words))
                tap.skip(name, why)
                continue
            arguments = [name for word in words[1:] for name in expand(word, folder)]
            done = run_once(program, words, arguments, folder, known)
            wrong = [] if done.returncode == 0 else ['status %d' % done.returncode, done.stderr]
            wrong += ['%s is not there' % output for output in outputs(words)
                      if not os.path.exists(os.path.join(folder, output))]
            if command.into:
                with open(os.path.join(folder, command.into), 'w', encoding='utf-8') as file:
                    file.write(done.stdout)
            tap.case(name, wrong or check_said(command, done.stdout, lines, update))
    if update:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(line for line in lines if line is not None))


def figure(program, words, key, known):
    if words not in known:
        said = subprocess.run([program, 'predict', *words.split(), '--json'], check=True, stdout=subprocess.PIPE)
        known[words] = json.loads(said.stdout)
    value = known[words]
    for part in key.split('.'):
        value = value[part]
    return value


def main():
    program, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    mpi = sys.argv[3] == 'yes'
    tap, known, done = Tap(), {}, {}
    tap.case('--update says what is printed now', check_update())
    tap.case('three dots stand where lines are left out', check_left_out())
    for page in PAGES:
        run_page(tap, program, source, page, mpi, '--update' in sys.argv[4:], done)
    for claim, left, key, sign, factor, right in CLAIMS:
        a, b = figure(program, left, key, known), figure(program, right, key, known)
        wrong = '%s of %s is %g, of %s %g: not %s %g times it' % (key, left, a, right, b, sign, factor)
        tap.case('claim: ' + claim, [] if COMPARE[sign](a, factor * b) else [wrong])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
