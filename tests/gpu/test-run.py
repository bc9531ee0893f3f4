"""tests/gpu/run, as far as a machine without a GPU can tell.

    test-run.py SOURCE-ROOT BUILD-FOLDER
"""
import json
import os
import re
import sys
import tarfile
import tempfile
import threading
import time

from trying import BUILD, HERE, ROOT, RUN, module_of, program, run, session_in, unlike

import goals
import machine as machines
import matrix
import parts
from session import Done
from tap import Tap


# ---- the order of parts ----------------------------------------------------------------------------

def parts_case(tap, folder):
    """A part that raises, one that hangs, one that works: each ends alone."""
    def breaks(session):
        raise ValueError('planted')

    def hangs(session):
        done = session.call('sh', '-c', 'echo begun; sleep 60 & wait')
        session.row('hanging', 'FAIL', 'status %d, %s' % (done.rc, done.tail()))

    def works(session):
        done = session.call('sh', '-c', 'echo fine')
        with open(session.path('summary.txt'), encoding='utf-8') as file:
            left = file.read()  # by the parts before, should this program end here
        good = done.rc == 0 and 'ValueError: planted' in left
        session.row('working', 'ok' if good else 'FAIL', done.tail())

    began = time.monotonic()
    with session_in(os.path.join(folder, 'parts'), dry=True) as session:
        session.run([('late', 0, works), ('hangs', 40, hangs), ('breaks', 40, breaks), ('works', 520, works)])
    took = time.monotonic() - began
    rows = [(row['part'], row['name'], row['verdict'], row['value']) for row in session.rows if row['name'] != 'time']
    wanted = [('late', 'all of it', 'skip', 'no time is left'), ('hangs', 'hanging', 'FAIL', 'status 124, begun'),
              ('breaks', 'all of it', 'FAIL', 'ValueError: planted'), ('works', 'working', 'ok', 'fine')]
    complaints = [] if rows == wanted else ['%s' % (rows,)]
    if took > 20:
        complaints.append('a part that hangs held the next one up: %.0f s' % took)
    tap.case('/gpu/run/no part keeps the next one from running', complaints)
    with tarfile.open(session.path('logs.tar.gz')) as archive:
        names = archive.getnames()
    tap.case('/gpu/run/what parts print is kept', [] if 'logs/hangs.log' in names else [str(names)])


def share_case(tap, folder):
    """A part that takes more than its own time takes it from all that follow; what one leaves they have."""
    given = []

    def takes_more(session):
        session.extend(1e9)
        given.append(session.remaining())
        session.until -= given[-1]  # as if it had taken all of it

    def leaves(session):
        given.append(session.remaining())
    with session_in(os.path.join(folder, 'shares'), dry=True) as session:  # 45 s
        session.run([('more', 100, takes_more), ('one', 250, leaves), ('two', 250, leaves)])
    tap.case('/gpu/run/a part that takes too long takes no other one\'s time alone', [] if all(
        abs(s - wanted) < 1 for s, wanted in zip(given, (22.5, 11.25, 22.5), strict=True)) else [str(given)])


def full_case(tap, folder):
    """A disk that takes nothing: each part runs, and the table, which is printed, says so."""
    def speaks(session):
        done = session.call('sh', '-c', 'echo fine')
        session.row('speaking', 'ok' if done.rc == 0 else 'FAIL', done.tail())

    with session_in(os.path.join(folder, 'full'), dry=True) as session:
        for name in (('results.jsonl',), ('summary.txt.new',), ('logs', 'one.log'), ('logs.tar.gz.new',)):
            os.symlink('/dev/full', session.path(*name))
        session.run([('one', 300, speaks), ('two', 300, speaks)])
        session.conclude('last', speaks)
        session.save()
    table = '\n'.join(session.table())
    complaints = [] if table.count('ok    speaking: fine') == 3 else [table]
    complaints += ['not told: ' + name for name in ('results.jsonl', 'summary.txt', 'logs', 'logs.tar.gz')
                   if table.count(name + ' could not be written: No space left on device') != 1]
    tap.case('/gpu/run/a disk that is full ends nothing', complaints)


# Stands for foreshard-exec: on the host it trains, by NCCL it says what it is told to.
BY_NCCL = r'''#!/bin/sh
case "$*" in
*nccl*) echo '%s'; exit %d;;
*) echo '{"losses": [4.5, 4.25, 4], "step_ms": 1}';;
esac
'''


def nccl_case(tap, folder):
    """Each way to communicate is held against the host's losses. Where NCCL fails on one card it is asked once."""
    complaints = []
    for said, status, verdicts, words in (
            ('{"losses": [4.5, 4.25, 4.00001], "step_ms": 12.5}', 0, {'ok'}, "the host's within 2.5e-06 (bound 2e-05)"),
            ('{"losses": [4.5, 4.3, 4], "step_ms": 2.5e3}', 0, {'ok', 'MISS'}, "the host's within 0.012 (bound 2e-05); a step in "
             '2500 ms'),
            ('ncclCommInitRankConfig failed', 1, {'MISS', 'skip'}, 'on one card here: ncclCommInitRankConfig failed')):
        programs = {name: program(os.path.join(folder, 'nccl-' + name), text) for name, text in (
            ('foreshard', '#!/bin/sh\n'), ('foreshard-exec', BY_NCCL % (said, status)))}
        with session_in(os.path.join(folder, 'nccl'), programs=programs) as session:
            matrix.by_nccl(session)
        told = {row['name']: row for row in session.rows}
        good = {row['verdict'] for row in session.rows} == verdicts and all(
            name in told for name, _, _ in matrix.NCCL) and words in told[matrix.NCCL[0][0]]['value']
        complaints += [] if good else ['%s: %s' % (said, session.rows)]
    tap.case('/gpu/run/each way to communicate is held against the host\'s losses', complaints)


# Stands for foreshard-exec: what it is to fail at is in a file. MPI, which it would begin with by itself, has the last word.
EXEC = r'''#!/bin/sh
case "$*" in *"--local-ranks 1"*);; *) trap 'echo "ORTE_ERROR_LOG: Data unpack would read past end of buffer"' EXIT;; esac
read wrong <%(wrong)s
case "$wrong" in
always) echo "an illegal access${CUDA_LAUNCH_BLOCKING:+ in fill}"; exit 1;;
cudnn) grep -q bf16 %(planned)s && [ -z "$FORESHARD_NO_CUDNN" ] && { echo "cudnnBackendExecute: no"; exit 1; };;
esac
exit 0
'''
# Stands for compute-sanitizer, which by itself looks at the first process alone.
LOOKS_ON = r'''#!/bin/sh
case "$*" in *"--target-processes all "*) echo "========= Invalid __global__ write of size 4 bytes";; esac
exit 1
'''


def toy_case(tap, folder):
    """A toy that fails is looked at closely, and leaves in the rows what it fails in; where cuDNN is to blame, what follows
    goes without it."""
    wrong, planned, variables = os.path.join(folder, 'wrong'), os.path.join(folder, 'planned'), {}
    programs = {name: program(os.path.join(folder, 'toy-' + name), text) for name, text in (
        ('foreshard-exec', EXEC % {'wrong': wrong, 'planned': planned}), ('foreshard', '#!/bin/sh\necho "$@" >%s\n' % planned))}
    tool = program(os.path.join(folder, 'looks-on'), LOOKS_ON)
    kept, parts.sanitizer_tool = parts.sanitizer_tool, lambda: tool
    rows, complaints = {}, []
    with session_in(os.path.join(folder, 'toys'), programs=programs, variables=variables,
                    environment=lambda: os.environ | variables) as session:
        for what in ('nothing', 'always', 'cudnn'):
            with open(wrong, 'w', encoding='utf-8') as file:
                file.write(what + '\n')
            session.rows.clear()
            session.part_until = 0
            parts.first_program(session)
            rows[what] = [(row['name'], row['verdict']) for row in session.rows]
            values = [row['value'] for row in session.rows]
            complaints += ['%s: %s' % (what, variables)] * (bool(variables) != (what == 'cudnn'))
            complaints += [what + ': it trains, or not'] * (session.trains == (what == 'always'))
            complaints += ['what fails is not told: %s' % values] * (what == 'always' and values != [
                'an illegal access', 'an illegal access in fill', 'Invalid __global__ write of size 4 bytes'])
    parts.sanitizer_tool = kept
    wanted = {'nothing': [('a toy trains', 'ok'), ('a toy in halves trains', 'ok')],
              'always': [('a toy trains', 'FAIL'), ('a call at a time', ''), ('as compute-sanitizer sees it', '')],
              'cudnn': [('a toy trains', 'ok'), ('a toy in halves trains', 'FAIL'), ('without cuDNN it does', 'MISS')]}
    tap.case('/gpu/run/a toy that fails is looked at closely', complaints + (['%s' % rows] if rows != wanted else []))


def object_case(tap):
    wanted = {'{"a": 1}\n': {'a': 1}, 'NCCL WARN x {y}\n{\n "a": 1\n}\nNCCL WARN z\n': {'a': 1}, '': {}, '{"a": ': {},
              '3\n': {}}
    tap.case('/gpu/run/what a program answers is found among what its libraries say', [
        '%r: %s' % (text, matrix.last_object(text)) for text, answer in wanted.items() if matrix.last_object(text) != answer])


def cut_case(tap, folder):
    """What ends with its part is told apart from what takes longer than it may; what cannot die holds nothing up."""
    with session_in(os.path.join(folder, 'cut'), dry=True) as session:
        slow = session.call('sleep', '20', limit=1)
        session.part_until = time.monotonic() + 1.5
        cut = session.call('sleep', '20', limit=10)
        for done in (slow, cut):
            matrix.failed(session, 'x', done)
        verdicts = [row['verdict'] for row in session.rows]
        session.part_until = time.monotonic() + 60
        sleeping = threading.Thread(target=lambda: session.call('sleep', '20'))
        sleeping.start()
        while not session.running:
            time.sleep(0.01)
        session.end_all()
        sleeping.join(5)
        later = session.call('touch', os.path.join(folder, 'later'))
    tap.case('/gpu/run/nothing outlives its end', ['a command goes on'] * sleeping.is_alive() + (
        ['another began'] if later.rc != 124 or os.path.exists(os.path.join(folder, 'later')) else []))
    told = [parts.how(done) for done in (slow, cut, Done(0, 1, ''), Done(1, 1, ''))]
    tap.case('/gpu/run/what is cut off with its part has not failed', [] if verdicts == ['FAIL', 'skip'] and told == [
        'FAIL', 'skip', 'ok', 'FAIL'] else ['%s %s' % (verdicts, told)])


# Stands for foreshard: a calibration that hangs when it has written down some of it.
CALIBRATES = r'''#!/bin/sh
for output; do :; done
printf '# Unfinished: some of it.\n' >"$output.unfinished"
sleep 20
'''


def unfinished_case(tap, folder):
    """A calibration that is cut off leaves what it has, and the rest is predicted with that."""
    programs = {'foreshard': program(os.path.join(folder, 'calibrates'), CALIBRATES)}
    with session_in(os.path.join(folder, 'unfinished'), 2, programs=programs) as session:
        session.until = session.part_until
        parts.calibrate(session)
    rows = [(row['name'], row['verdict'], row['value']) for row in session.rows]
    left = os.listdir(session.folder)
    good = rows[0][:2] == ('foreshard calibrate', 'skip') and rows[1:] == [('what it left', '', 'some of it')]
    tap.case('/gpu/run/what a calibration has when it is cut off is kept', [] if good and session.cluster == session.path(
        'calibrated.ini') and 'calibrated.ini' in left and 'calibrated.ini.unfinished' not in left else ['%s, %s' % (rows, left)])


def attempt_case(tap, folder):
    """What one case of a part raises, the cases after it do not suffer from."""
    kept, tried = (matrix.play, matrix.rehearse), []

    def breaks(_, name, *__):
        tried.append(name)
        raise KeyError('planted')
    matrix.play = matrix.rehearse = breaks
    with session_in(os.path.join(folder, 'attempts'), 600, programs={'foreshard-exec': 'none', 'foreshard': 'none'},
                    data=folder, cluster='h200-node') as session:
        matrix.side_by_side(session)
    matrix.play, matrix.rehearse = kept
    wanted = sum(map(len, (matrix.ONE_RANK, matrix.TRACED, matrix.REHEARSED, matrix.SHARED_CARD)))
    failed = [row for row in session.rows if row['verdict'] == 'FAIL' and 'KeyError' in row['value']]
    tap.case('/gpu/run/no case of a part keeps the next one from running', [] if len(tried) == len(failed) == wanted else [
        '%d tried and %d failed of %d' % (len(tried), len(failed), wanted)])


def readme_case(tap):
    """What the README promises of each goal and part is of those that there are, in their order."""
    with open(os.path.join(HERE, 'README.md'), encoding='utf-8') as file:
        text = file.read()
    told = re.findall(r'(?m)^\| (.*?) \| .* \| `(\w+)`(?:, `\w+`)? \|$', text)
    wanted = [(goal, part) for goal, part, _ in goals.GOALS]
    tap.case('/gpu/run/the README tells of each goal', [] if told == wanted else [
        'README: %s' % (pair,) for pair in told if pair not in wanted] + [
        'goals.py: %s' % (pair,) for pair in wanted if pair not in told])
    told = re.findall(r'(?m)^\| `(\w+)` \| (\d+) s \|', text)
    wanted = [(name, str(seconds)) for name, seconds, _ in module_of(RUN).PARTS]
    tap.case('/gpu/run/the README tells of each part, in order', [] if told == wanted else ['%s, not %s' % (told, wanted)])


def benchmark_case(tap):
    line = 'layernorm_backward              0.123 ms    4001.5 GB/s   91.2 % of the copy\n'
    other = 'linear                          1.000 ms     700.0 TFLOP/s   88.0 % of the product of 8192 cubed\n'
    shares = parts.shares_of_copy(line + other + line.replace('layernorm_backward', 'adam (fused, fp32)'))
    source = open(os.path.join(ROOT, 'bench', 'kernels-cuda.c'), encoding='utf-8').read()
    tap.case('/gpu/run/lines of the benchmark are read', [
        *([] if shares == {'layernorm_backward': 0.912, 'adam (fused, fp32)': 0.912} else [str(shares)]),
        *('the benchmark has no ' + name for name in parts.AT_COPY_SPEED if 'BYTES("%s"' % name not in source)])


def sanitizer_case(tap):
    """What compute-sanitizer says at its end, where it is refused, and where its time is up."""
    cases = [(0, '========= ERROR SUMMARY: 0 errors', 'ok'), (9, '========= ERROR SUMMARY: 3 errors', 'FAIL'),
             (0, '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)', 'ok'),
             (9, '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)', 'FAIL'),
             (1, '========= Error: Device not supported. Please refer to the documentation', 'skip'),
             (124, '========= COMPUTE-SANITIZER', 'skip'), (1, 'Bail out!', 'FAIL')]
    complaints = []
    for rc, output, wanted in cases:
        verdict, why = parts.judged_by_sanitizer(Done(rc, 1, output))
        complaints += [] if verdict == wanted and why else ['%d, %s: %s (%s)' % (rc, output, verdict, why)]
    tap.case('/gpu/run/the sanitizer is understood', complaints)


# Stands for compute-sanitizer: a library's call that was refused is an error, unless such are not to be reported.
SANITIZER = r'''#!/bin/sh
case "$*" in
*"--tool memcheck --report-api-errors no"*) echo "========= ERROR SUMMARY: 0 errors";;
*"--tool memcheck"*) echo "========= ERROR SUMMARY: 1 error"; exit 9;;
*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";;
esac
'''


def sanitized_case(tap, folder):
    """Of kernels' memory and races it is asked, not of what libraries try."""
    program(os.path.join(folder, 'compute-sanitizer'), SANITIZER)
    test = {'name': 'kernels-cuda/rows', 'command': ['true'], 'environment': {}, 'timeout': 60}
    path, os.environ['PATH'] = os.environ['PATH'], ':'.join([folder, os.environ['PATH']])
    with session_in(os.path.join(folder, 'sanitized'), tests=[test]) as session:
        parts.sanitizer(session)
    os.environ['PATH'] = path
    verdicts = [(row['name'], row['verdict']) for row in session.rows]
    tap.case('/gpu/run/the sanitizer tells of kernels', [] if verdicts == [
        ('memcheck kernels-cuda/rows', 'ok'), ('racecheck kernels-cuda/rows', 'ok')] else [str(verdicts)])


# ---- the command -----------------------------------------------------------------------------------

def folder_case(tap, folder):
    new_folder, name = module_of(RUN).new_folder, os.path.join(folder, 'visits')
    names = []
    for _ in range(3):
        names.append(os.path.basename(new_folder(name)))
        os.makedirs(os.path.join(folder, names[-1]))
        open(os.path.join(folder, names[-1], 'results.jsonl'), 'x', encoding='utf-8').close()
    tap.case('/gpu/run/what an earlier visit left is kept',
             [] if names == ['visits', 'visits-2', 'visits-3'] else names)


def command_cases(tap, folder):
    output = os.path.join(folder, 'results')
    done = run(RUN, '--dry', '--build', BUILD, '--output', output, '--minutes', '2', env=os.environ | {
        'FORESHARD_TORCH_PYTHON': ''})
    complaints = unlike(done, 0, 'allocated equal at all', 'ok    gpt2, traced, FSDP2: step', '2 ranks on one card', 'ours gpt2-xl', ' 0 failed')
    left = sorted(os.listdir(output)) if os.path.isdir(output) else []
    if left != ['logs.tar.gz', 'records.tar.gz', 'results.jsonl', 'summary.txt', 'traces.tar.gz']:
        complaints.append('leaves ' + ' '.join(left))
    else:
        with open(os.path.join(output, 'summary.txt'), encoding='utf-8') as file:
            if file.read().strip() not in done.stdout:
                complaints.append('the table is not what is printed')
        with open(os.path.join(output, 'results.jsonl'), encoding='utf-8') as file:
            rows = [json.loads(line) for line in file]
        if len({row['part'] for row in rows if 'part' in row}) != 14:  # the goals too
            complaints.append('not all parts left a row')
    tap.case('/gpu/run/all of it runs without a GPU', complaints)
    tap.case('/gpu/run/it says what is wrong', [
        *unlike(run(RUN, '--parts', 'info,everything'), 2, 'there is no part everything'),
        *unlike(run(RUN, '--dry', '--bundle', os.path.join(ROOT, 'README.md')), 2, 'README.md', 'tests/gpu/bundle'),
        *unlike(run(RUN, '--dry', '--build', HERE), 2, 'no build folder'),
        *([] if machines.gpu() else unlike(run(RUN, '--build', BUILD), 2, 'shows a GPU', '--dry'))])


def gpu_cases():
    """(name, network, options, seq, ranks that are played, 0 for one that is rehearsed) of all that a GPU is to play."""
    cases = [(name, network, options, 0, 1) for name, network, options in matrix.ONE_RANK + matrix.TRACED]
    cases += [(name, network, options, 0, 0) for name, network, _, options in matrix.REHEARSED]
    cases += [('%d ranks, %s' % (ranks, way), network, '-n %d %s' % (ranks, options), 0, ranks)
              for ranks, way, network, options in matrix.SHARED_CARD]
    cases += [('NCCL, ' + way, network, '-n 2 ' + options, 0, 2) for way, network, options in matrix.NCCL]
    return cases + [(name, network, matrix.TRAINING % batch, seq, 1) for name, network, seq, batch in matrix.TRAINED]


def plans_case(tap, folder):
    """What a GPU is to play can be planned, and begins on an emulated one, whose small memory ends it at once: the dry run
    plays toys in its place."""
    emulated = os.path.join(BUILD, 'tests', 'exec', 'foreshard-exec-emulated')
    unplanned, refused = [], []
    with session_in(os.path.join(folder, 'plans'), 200, machine=machines.Built(BUILD, None)) as session:
        for name, network, options, seq, ranks in gpu_cases():
            plan = matrix.planned(session, name, network, options, seq)
            if not plan:
                unplanned.append(name)
            elif os.path.exists(emulated):
                refused += ['%s: %s' % (name, why) for why in ended_by_memory(session, emulated, plan, ranks)]
    tap.case('/gpu/run/what a GPU is to play can be planned', unplanned)
    case = '/gpu/run/what a GPU is to play is taken by its device'
    if os.path.exists(emulated):
        tap.case(case, refused)
    else:
        tap.skip(case, 'no emulated GPU in this build')


def collectives_case(tap):
    """By NCCL, each way to communicate that a GPU has a call for. The uneven one is predicted, never run."""
    with open(os.path.join(ROOT, 'plan', 'op', 'collectives.def'), encoding='utf-8') as file:
        every = set(re.findall(r'(?m)^(?:\w+_)?COLLECTIVE\(\w+, *"(\w+)"', file.read()))
    wanted = every - {'barrier', 'offer', 'broadcast', 'uneven_all_to_all'}
    told = ''
    for _, network, options in matrix.NCCL:
        told += run(os.path.join(BUILD, 'cli', 'foreshard'), 'plan', network, '-n', '2', *options.split(), '--print').stdout
    launched = set(re.findall(r'(?m)^launch \w+ (\w+) ', told))
    tap.case('/gpu/run/NCCL is asked for each collective', [] if wanted and wanted <= launched else [
        'never: ' + ', '.join(sorted(wanted - launched))])


def ended_by_memory(session, emulated, plan, ranks):
    """Complaints of a run that neither trains nor is out of memory."""
    with open(plan, encoding='utf-8') as lines:
        lanes = next(line for line in lines if line.startswith('lanes ')).split()[1:]
    # Room for what each lane has for itself, and little more.
    environment = os.environ | {'FORESHARD_EMULATOR_MIB': str(34 * len(lanes) + 4), 'OPENBLAS_NUM_THREADS': '1'}
    if ranks:
        done = run(emulated, plan, '--device', 'cuda', '--steps', '1', '--local-ranks', str(ranks), env=environment)
    else:
        done = run(session.machine.programs['foreshard'], 'rehearse', plan, '--rank', '0', '--cluster',
                   matrix.far_cluster(session), '--device', 'cuda', '--steps', '1',
                   env=environment | {'FORESHARD_EXEC': emulated})
    good = done.returncode == 0 or (done.returncode == 1 and 'out of memory' in done.stderr)
    return [] if good else ['status %d: %s' % (done.returncode, (done.stderr or done.stdout)[-200:].strip())]


def main():
    tap = Tap()
    readme_case(tap)
    benchmark_case(tap)
    sanitizer_case(tap)
    object_case(tap)
    with tempfile.TemporaryDirectory() as folder:
        parts_case(tap, folder)
        full_case(tap, folder)
        share_case(tap, folder)
        nccl_case(tap, folder)
        toy_case(tap, folder)
        cut_case(tap, folder)
        unfinished_case(tap, folder)
        attempt_case(tap, folder)
        sanitized_case(tap, folder)
        folder_case(tap, folder)
        command_cases(tap, folder)
        plans_case(tap, folder)
        collectives_case(tap)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
