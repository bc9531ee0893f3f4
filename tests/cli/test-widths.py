"""tests/cli/test-widths.py FORESHARD SOURCE - no line that a command prints for people is wider than 100
columns, where its sentences and rows are longest (but plot's rows of three settings), and no complaint wider
than its terminal; breaking them parts no figure from its unit; no line ends in a space, and nothing is -0.0."""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner
from tap import Tap

WIDEST = 100
BF16 = '--param-dtype bf16'
SHARED = 'llama3-70b -n 64 --seq 8192 --tensor 8 --pipeline 2 --accumulate 4 --checkpointing full %s' % BF16
TOY = 'gpt-toy -n 8'
FAR = 'dgx-h100:4:inter_node.nic_gb_per_s=12.5'
XL = 'gpt2-xl -n 8 --cluster a100-node'
TABLES = ('train_fsdp_paper.csv', 'train_fms_fsdp.csv', 'train_context.csv', 'collectives.csv')
# What each shows at its widest.
COMMANDS = (
    ('a prediction', 'predict %s' % XL),
    ('what does not fit, and ways to make it', 'predict %s %s --micro-batch 64' % (XL, BF16)),
    ('no way to fit', 'predict gpt-1t -n 8 %s --cluster a100-node' % BF16),
    ('retries', 'predict gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 %s --checkpointing full '
     '--limit-all-gathers 0' % BF16),
    ('lost to a network', 'predict gpt2-xl -n 16 --cluster two-nodes-ethernet %s' % BF16),
    ('every rank', 'predict gpt2-xl -n 16 --cluster two-nodes-ethernet %s --every-rank --jitter 3 --spread 2' % BF16),
    ('stages', 'predict llama3-8b -n 8 --cluster a100-node %s --pipeline 4 --accumulate 8' % BF16),
    ('two traces', 'compare one.trace other.trace'),
    ('two traces that end', 'compare large.trace elsewhere.trace'),
    ('choices', 'choose gpt2-xl -n 8 --cluster a100-node -o chosen.ini --knob sharding=full,grad-op'),
    ('choices of many kinds', 'choose gpt2-xl --cluster a100-node --cluster dgx-h100 --price 2 --tokens 1e12 '
     '--knob checkpointing=none,full --knob micro_batch=1,64 --spare 5'),
    ('choices with notes', 'choose qwen3-30b-a3b -n 256 --cluster dgx-h100:32 --seq 4096 --top 3'),
    ('no choice', 'choose gpt-1t -n 8 --cluster a100-node --knob sharding=full'),
    ('a diagnosis', 'diagnose one.trace'),
    ('a diagnosis of what does not fit', 'diagnose large.trace'),
    ('a peak, explained', 'explain peak_allocated_bytes one.trace'),
    ('a step, explained', 'explain step_ms one.trace'),
    ('fits, explained', 'explain fits large.trace'),
    ('retries, explained', 'explain alloc_retries one.trace'),
    ('a collective, explained', 'explain comm.all_gather.exposed_ms ' + XL),
    ('a unit, explained', 'explain layers.0 one.trace'),
    ('shardings', 'explain shardings gpt2-xl -n 7 %s --cluster a100-node' % BF16),
    ('shardings in stages', 'explain shardings llama-toy -n 4 --pipeline 2 --accumulate 2 --cluster a100-node'),
    ('shardings of adapters', 'explain shardings gpt2 -n 8 --cluster a100-node --lora-rank 16'),
    ('names', 'list'),
    ('settings, drawn', 'plot %s --knob sharding=full,grad-op --knob micro_batch=1,2' % XL),
    ('a trade, drawn', 'plot %s --knob micro_batch=1,2 --knob checkpointing=none,full --picture pareto' % XL),
    ('memory, drawn', 'plot one.trace'),
    ('memory of what ends, drawn', 'plot large.trace'),
    ('lanes, drawn', 'plot one.trace --picture lanes'),
    ('a plan', 'plan %s' % SHARED),
    ('a plan of adapters', 'plan gpt2-xl -n 8 --lora-rank 16'),
    ("a plan's memory", 'plan %s --memory' % SHARED),
    ('units', 'units %s' % SHARED),
    ('modules', 'units mixtral-8x7b -n 64 --tree --seq 4096'),
    ('collectives', 'collectives --cluster dgx-h100:64 -n 256 --table'),
    ('collectives without a switch', 'collectives --cluster a6000-node -n 4'),
    ('a rehearsal', 'rehearse %s --rank 3 --cluster %s --steps 3 --trace rehearsed.trace' % (TOY, FAR)),
    ('a replay', 'replay %s rehearsed.trace' % TOY),
    ('published runs, summed up', 'validate --brief ' + ' '.join(TABLES)),
    ('published runs', 'validate ' + ' '.join(TABLES)),
)
NARROW = 72
SENTENCES = ('predict %s' % XL, 'diagnose large.trace', 'explain step_ms one.trace', 'compare one.trace other.trace')
CHOICES = ('choose gpt2-xl -n 8 --cluster a100-node --knob sharding=full,grad-op',
           'choose gpt2-xl --cluster a100-node --cluster dgx-h100:1 --price 2 --tokens 1e12')
COMPLAINTS = ('predict gpt-toy -n 8 --cluster dgx-h100 --sharding ful', 'rehearse gpt-toy --rank 1')
# What a line may not end with: the unit, or the value, would be on the next. A number behind a gap is a table's.
PARTED = re.compile(r'\S \(?[+-]?\d+(\.\d+)?$|(^| )--?[a-z][a-z-]*$')
TRACES = (('one.trace', XL), ('other.trace', 'gpt2-xl -n 8 --cluster dgx-h100'),
          ('elsewhere.trace', 'gpt2-xl -n 8 --cluster dgx-h100 %s --micro-batch 64' % BF16),
          ('large.trace', '%s %s --micro-batch 64' % (XL, BF16)))


def indent(line):
    return len(line) - len(line.lstrip(' '))


def check(run, words):
    status, out, err = run(*words.split())
    if status:
        return ['status %d: %s' % (status, err)]
    lines = out.split('\n')
    said = ['%d columns: %s' % (len(line), line) for line in lines if len(line) > WIDEST]
    said += ['ends in a space: %s' % line for line in lines if line.endswith(' ')]
    said += ['a zero with a sign: %s' % line for line in lines if re.search(r'(^|\s)-0(\.0+)? ', line)]
    goes_on = False  # a line is broken where the one after it stands further in, and had no room on it
    for line, after in zip(lines, lines[1:]):
        further = indent(after) - indent(line)
        first = after.split(' ')[indent(after)]
        goes_on = (further > 0 or (goes_on and further == 0)) and len(line) + 1 + len(first) > WIDEST
        if goes_on and PARTED.search(line):
            said.append('parted: %s / %s' % (line, after))
    return said


def on_terminal(program, words, folder, **streams):
    """What a terminal of NARROW columns gets, and the status."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack('HHHH', 24, NARROW, 0, 0))
    got = []
    with subprocess.Popen([program, *words.split()], cwd=folder, **{name: end if to is None else to
                                                                    for name, to in streams.items()}) as process:
        os.close(end)
        while True:
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # nobody writes there any more
                break
            if not part:
                break
            got.append(part)
    os.close(terminal)
    return b''.join(got).decode().replace('\r\n', '\n'), process.returncode


def is_row(line):
    return len(re.split(' {2,}', line.strip())) > 2


def output_on_terminal(run, words):
    """Sentences are as wide as it is; rows, and all the words, as in a file."""
    text, status = on_terminal(run.program, words, run.folder, stdout=None, stderr=subprocess.DEVNULL)
    plain = run(*words.split())[1]
    said = ['%d columns: %s' % (len(line), line) for line in text.split('\n')
            if len(line) > NARROW and not is_row(line)]
    if status or text.split() != plain.split():
        said.append('status %d, other words: %s' % (status, text))
    return said + ([] if len(text.split('\n')) > len(plain.split('\n')) else ['nothing is narrower'])


def choices_on_terminal(run, words):
    """Rows fit, too: what has no column stands below its row. The figures are those of a file."""
    text, status = on_terminal(run.program, words, run.folder, stdout=None, stderr=subprocess.DEVNULL)
    plain = run(*words.split())[1]
    said = ['%d columns: %s' % (len(line), line) for line in text.split('\n') if len(line) > NARROW]
    said += [] if max(map(len, plain.split('\n'))) > NARROW else ['nothing had to be narrower']
    figures, wanted = (sorted(re.findall(r'\d[\d.]*', of)) for of in (text, plain))
    return said + ([] if not status and figures == wanted else ['status %d, other figures: %s' % (status, text)])


def complaint_on_terminal(program, words):
    """What a terminal of NARROW columns gets of a complaint that is longer."""
    text, status = on_terminal(program, words, None, stdout=subprocess.DEVNULL, stderr=None)
    lines = text.split('\n')
    said = ['%d columns: %s' % (len(line), line) for line in lines if len(line) > NARROW]
    if len(lines) < 3 or status != 2:
        said.append('status %d, %s' % (status, text))
    return said


def main():
    program, source = sys.argv[1], sys.argv[2]
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        for table in TABLES:
            shutil.copy(os.path.join(source, 'tests', 'validation', table), folder)
        for name, words in TRACES:
            status, _, err = run('predict', *words.split(), '--trace', name)
            if status:
                tap.case('predict ' + words, [err])
        for name, words in COMMANDS:
            tap.case('%s: foreshard %s' % (name, words), check(run, words))
        for words in SENTENCES:
            tap.case('on a terminal: ' + words, output_on_terminal(run, words))
        for words in CHOICES:
            tap.case('rows on a terminal: ' + words, choices_on_terminal(run, words))
        for words in COMPLAINTS:
            tap.case('complaint of ' + words, complaint_on_terminal(os.path.abspath(program), words))
            tap.case('one line of it in a file', [] if run(*words.split())[2].count('\n') == 1 else ['more'])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
