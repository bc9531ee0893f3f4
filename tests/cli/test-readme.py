"""tests/cli/test-readme.py FORESHARD SOURCE MPI [--update] - the README and the pages of docs/ are true.

Every `foreshard` command in them, run in its order in one folder a page, ends with status 0, leaves the files
that -o, --trace and --save name, and prints the lines that stand indented below it, in their order. What the
text says in words is held by CLAIMS. MPI, yes or no: whether `foreshard run` can run here.

--update writes the lines anew where only their numbers differ; read the difference, and the words around it."""
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

PAGES = ('README.md', 'docs/classroom.md', 'docs/capacity.md', 'docs/own-run.md', 'docs/own-network.md',
         'docs/hugging-face.md', 'docs/validation.md')
XL = 'gpt2-xl -n 8 --cluster a100-node --param-dtype bf16'
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
     XL + ' --micro-batch 8', 'peak_reserved_bytes', '>', 3, XL + ' --micro-batch 8 --checkpointing full'),
    ('checkpointing costs about a fifth more time',
     XL + ' --micro-batch 8 --checkpointing full', 'step_ms', '<', 1.25, XL + ' --micro-batch 8'),
    ('without a limiter the same is allocated', 'gpt-175b -n 512 %s --limit-all-gathers 0' % PAPER,
     'peak_allocated_bytes', '<', 1.001, 'gpt-175b -n 512 ' + PAPER),
    ('without a limiter much more is reserved', 'gpt-175b -n 512 %s --limit-all-gathers 0' % PAPER,
     'peak_reserved_bytes', '>', 1.5, 'gpt-175b -n 512 ' + PAPER),
    ('a loss read after backward costs time', XL + ' --clip 1 --host-reads loss', 'step_ms', '>', 1.05,
     XL + ' --clip 1'),
    ('reads cost no memory', XL + ' --clip 1 --host-reads both', 'peak_reserved_bytes', '==', 1, XL + ' --clip 1'),
    ('offloaded activations cost no time', XL + ' --micro-batch 4 --checkpointing full --offload activations',
     'step_ms', '<', 1.01, XL + ' --micro-batch 4 --checkpointing full'),
    ('an offloaded optimizer costs much', XL + ' --micro-batch 4 --checkpointing full --offload optimizer',
     'step_ms', '>', 1.5, XL + ' --micro-batch 4 --checkpointing full'),
    ('sixteen times the batch takes the same step, where all is waiting',
     'gpt2-xl -n 16 --cluster two-nodes-ethernet --param-dtype bf16 --micro-batch 16', 'step_ms', '<', 1.01,
     'gpt2-xl -n 16 --cluster two-nodes-ethernet --param-dtype bf16'),
    ('T5-11B: twice the batch at nearly the same step', 't5-11b -n 512 %s --micro-batch 2' % PAPER,
     'step_ms', '<', 1.1, 't5-11b -n 512 ' + PAPER),
    ('GPT-175B scales from 128 to 512 GPUs', 'gpt-175b -n 512 ' + PAPER, 'tflops_per_gpu', '>', 0.97,
     'gpt-175b -n 128 ' + PAPER),
)
COMPARE = {'<': operator.lt, '>': operator.gt, '==': operator.eq}


class Command:
    """A command of a page, and the lines that it is said to print: (number of the line, text)."""

    def __init__(self, words):
        self.words = words
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


def shape(line):
    """A line without its numbers, whole ones told from others: what stays when a model changes."""
    return re.sub(r'\s+', ' ', re.sub(r'-?\d+(\.\d+)?', lambda m: '#.#' if m[1] else '#', line.strip()))


def check_said(command, printed, lines, update):
    """Complaints; with update, lines are changed where the shape is the same."""
    printed, at = [line.strip() for line in printed.split('\n')], 0
    for number, text in command.said:
        alike = [i for i in range(at, len(printed)) if printed[i] == text]
        if not alike and update:
            alike = [i for i in range(at, len(printed)) if shape(printed[i]) == shape(text)]
            if alike:
                indent = lines[number][:len(lines[number]) - len(lines[number].lstrip())]
                lines[number] = indent + printed[alike[0]]
        if alike:
            at = alike[0] + 1
        else:
            yield 'line %d is not printed: %s' % (number + 1, text)


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


def run_page(tap, program, source, page, mpi, update):
    path = os.path.join(source, page)
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    listed = commands(lines)
    if len(listed) < 4:
        tap.case(page + ': commands are found', ['only %d' % len(listed)])
    with tempfile.TemporaryDirectory() as folder:
        for name in ('tests', 'models'):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        lost = set()  # files that only a real run makes
        for command in listed:
            words, name = command.words, page + ': ' + ' '.join(command.words)
            why = cannot_run(words, lost, mpi)
            if why:
                lost.update(outputs(words))
                tap.skip(name, why)
                continue
            arguments = [name for word in words[1:] for name in expand(word, folder)]
            done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
            wrong = [] if done.returncode == 0 else ['status %d' % done.returncode, done.stderr]
            wrong += ['%s is not there' % output for output in outputs(words)
                      if not os.path.exists(os.path.join(folder, output))]
            tap.case(name, wrong or list(check_said(command, done.stdout, lines, update)))
    if update:
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines))


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
    tap, known = Tap(), {}
    for page in PAGES:
        run_page(tap, program, source, page, mpi, '--update' in sys.argv[4:])
    for claim, left, key, sign, factor, right in CLAIMS:
        a, b = figure(program, left, key, known), figure(program, right, key, known)
        wrong = '%s of %s is %g, of %s %g: not %s %g times it' % (key, left, a, right, b, sign, factor)
        tap.case('claim: ' + claim, [] if COMPARE[sign](a, factor * b) else [wrong])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
