"""tests/cli/test-how-sure.py FORESHARD SOURCE - how far off published runs of a prediction's kind were stands
beside it: the figures of models/published/errors.ini, in words and in JSON."""
import configparser
import os
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

LLAMA = ['llama3-8b', '-n', '8', '--param-dtype', 'bf16', '--checkpointing', 'full', '--cluster', 'dgx-h100']
FLOAT8 = LLAMA + ['--kernels', 'compiled', '--float8', 'tensorwise']
LONG = LLAMA + ['--context', '2', '--seq', '16384', '--network-key', 'seq=16384']
SLOW = ['gpt2-xl', '-n', '16', '--cluster', 'two-nodes-ethernet']
SLOW_AND_RARE = ['gpt2-xl', '-n', '16', '--cluster', 'dgx-h100:inter_node.nic_gb_per_s=1']
# 512 GPUs without a limiter: the allocator gives memory back (docs/classroom.md, 4).
RETRIES = ['gpt-175b', '-n', '512', '--cluster', 'a100-roce', '--flavour', 'fsdp1', '--param-dtype', 'bf16',
           '--checkpointing', 'full', '--limit-all-gathers', '0']
TOO_LARGE = ['llama3-70b', '-n', '8', '--cluster', 'dgx-h100', '--param-dtype', 'bf16']
RARE = ['llama3-8b', '-n', '1', '--cluster', 'l40s-node', '--model-dtype', 'bf16', '--lora-rank', '8',
        '--checkpointing', 'full', '--seq', '2048']
# (what is predicted, the section it is looked up in, the words it is shown with)
KINDS = [
    (LLAMA, 'computes H100', 'runs on H100, bound by arithmetic'),
    (FLOAT8, 'float8 H100', 'runs on H100, in float8'),
    (LONG, 'context', 'runs, with context parallelism'),
    (SLOW, 'links A100', 'runs on A100, bound by links between GPUs'),
    (SLOW_AND_RARE, 'links', 'runs, bound by links between GPUs'),
    (RETRIES, 'retries A100', 'runs on A100, with allocation retries'),
    (RARE, 'computes', 'runs, bound by arithmetic'),
]


def wanted_line(errors, words):
    return 'half within %s %%, nine in ten within %s %% (%s %s)' % (
        errors['median_percent'], errors['p90_percent'], errors['runs'], words)


def check_kind(run, errors, settings, section, words):
    said = []
    status, text, err = run('predict', *settings)
    if status:
        return [err]
    for line in (wanted_line(errors[section], words), wanted_line(errors['memory'], 'runs')):
        if line not in flat(text):
            said.append('lacks: %s' % line)
    got = run.json('predict', *settings)['published_errors']
    gpu = (section.split() + [None])[1]
    if got['gpu'] != gpu or got['kind'] not in words:
        said.append('JSON: of %s, %s' % (got['gpu'], got['kind']))
    for key, name in (('step_time', section), ('peak_memory', 'memory')):
        if {name: float(value) for name, value in errors[name].items()} != got[key]:
            said.append('JSON: %s is %s' % (key, got[key]))
    return said


def check_unknown(run):
    """Of CPUs nothing was published; of what does not fit, memory alone is said."""
    said = []
    cpu = ['gpt-toy', '-n', '2', '--cluster', 'this-machine']
    if 'how sure' in run('predict', *cpu)[1] or 'published_errors' in run.json('predict', *cpu):
        said.append('there is no published run on this machine')
    text = run('predict', *TOO_LARGE)[1]
    shown = re.findall(r'^  (.*?) +half within', text, re.MULTILINE)
    if 'fits: NO' not in text or shown != ['memory']:
        said.append('of a run that does not fit: %s' % shown)
    return said


def check_choose(run, errors):
    """choose says it of its rows: a line for each kind, with the rows that are of it; none on CPUs."""
    words = ['gpt2-xl', '-n', '8', '--cluster', 'a100-node', '--cluster', 'dgx-h100', '--knob', 'micro_batch=8']
    said = []
    text = flat(run('choose', *words)[1])
    rows = run.json('choose', *words)['choices']
    for row in rows:
        gpu = row['published_errors']['gpu']
        line = 'row %d: %s' % (row['place'], wanted_line(errors['computes ' + gpu],
                                                          'runs on %s, bound by arithmetic' % gpu))
        if line not in text:
            said.append('lacks: %s' % line)
    if len(rows) != 2 or 'may change places' not in text:
        said.append('%d rows of two machines: %s' % (len(rows), text))
    alone = flat(run('choose', *words[:5], *words[7:], '--knob', 'sharding=full,grad-op')[1])
    if 'time %s' % wanted_line(errors['computes A100'], 'runs on A100') not in alone.replace(', bound by arithmetic', ''):
        said.append('one machine: %s' % alone)
    if 'change places' in alone:
        said.append('rows of one machine: %s' % alone)
    if 'how sure' in run('choose', 'gpt-toy', '-n', '2', '--cluster', 'this-machine')[1]:
        said.append('of CPUs nothing was published')
    return said


def check_refusals(run, source):
    said = []
    table = os.path.join(source, 'tests', 'validation', 'train_context.csv')
    for other in ('--json', '--brief', '--settings'):
        status, _, err = run('validate', '--kinds', other, table)
        if status != 2 or 'prints a table of its own' not in err:
            said.append('%s: status %d, %s' % (other, status, err))
    return said


def main(program, source):
    tap = Tap()
    errors = configparser.ConfigParser()
    errors.read(os.path.join(source, 'models', 'published', 'errors.ini'), encoding='utf-8')
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        for settings, section, words in KINDS:
            tap.case(section, check_kind(run, errors, settings, section, words))
        tap.case('unknown', check_unknown(run))
        tap.case('choose', check_choose(run, errors))
        tap.case('refusals', check_refusals(run, source))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
