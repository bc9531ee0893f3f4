"""tests/gpu/parts.py - what is done where a GPU is: facts, tests, records of PyTorch, calibration, benchmarks.

matrix.py holds the comparisons of prediction and measurement. Without a GPU (--dry) each part does as much of
the same as a CPU can: tests skip, recorders run in small if there is a PyTorch, plans are played on the host.
"""
import json
import os
import re
import shutil

import machine as machines

# (name, options of record_memory.py): toys, GPT-2 XL, blocks of GPT-175B, alone and as rank 0 of 8 and of 512.
MIXED = '--param-dtype bf16 --reduce-dtype fp32'
MEMORY = [
    ('toy-fsdp2-w8', '--preset gpt-toy --mode fsdp2 --world 8 ' + MIXED),
    ('toy-fsdp1-w8', '--preset gpt-toy --mode fsdp1 --world 8 ' + MIXED),
    ('gpt-175b-fsdp2-w512', '--preset gpt-175b --layers 4 --mode fsdp2 --world 512 --checkpointing inside '
     '--param-dtype bf16 --batch 2'),
    ('gpt-175b-fsdp1-w512', '--preset gpt-175b --layers 4 --mode fsdp1 --world 512 --checkpointing inside '
     '--param-dtype bf16 --batch 2'),
    ('gpt2-xl-fsdp2-w8', '--preset gpt2-xl --no-tied --mode fsdp2 --world 8 --batch 4 ' + MIXED),
    ('gpt2-xl-fsdp1-w8', '--preset gpt2-xl --mode fsdp1 --world 8 --batch 4 ' + MIXED),
    ('gpt2-xl-fsdp2-w1', '--preset gpt2-xl --no-tied --mode fsdp2 --group single --batch 4 ' + MIXED),
    ('toy-fsdp2-w1', '--preset gpt-toy --mode fsdp2 --group single ' + MIXED),
    ('gpt2-xl-fsdp1-w512', '--preset gpt2-xl --mode fsdp1 --world 512 --checkpointing inside --batch 8 ' + MIXED),
    ('gpt2-xl-fsdp2-w8-workspaces', '--preset gpt2-xl --no-tied --mode fsdp2 --world 8 --batch 4 --workspaces '
     'default ' + MIXED),
    ('gpt2-xl-fsdp1-w8-real-start', '--preset gpt2-xl --mode fsdp1 --world 8 --batch 4 --real-start ' + MIXED),
]


# ---- facts and tests -------------------------------------------------------------------------------

def info(session):
    machine = session.machine
    gpu = machines.gpu()
    session.row('programs', '', machine.what)
    session.row('GPU', '' if gpu else 'skip', ', '.join('%s %s' % item for item in gpu.items()) if gpu else 'none here')
    session.row('PyTorch', '' if machine.python else 'skip', machine.torch_version or 'no Python imports torch 2.11')
    loaded = machine.loaded()
    missing = ['%s lacks %s' % (program, library) for program, library, path in loaded if path == 'not found']
    session.row('shared libraries', 'FAIL' if missing else 'ok', ', '.join(missing) or 'all are found')
    of_cuda = sorted({path for _, library, path in loaded if re.match(r'lib(cu|nccl)', library)})
    session.row('of CUDA', '', ', '.join(of_cuda) or 'none')
    for command in (['nvidia-smi'], ['nvidia-smi', '-q', '-d', 'CLOCK,POWER,MEMORY,PERFORMANCE'], ['nvcc', '--version'],
                    ['lscpu'], ['free', '-g'], ['uname', '-a'], ['sh', '-c', 'pip list 2>/dev/null | grep -i -E '
                                                                 '"torch|nvidia|triton"']):
        if shutil.which(command[0]):
            session.call(*command, limit=20, ours=False)


def tap_counts(output):
    """(passed, failed, skipped) of TAP; a plan that is not met is a failure."""
    lines = re.findall(r'(?m)^\s*(not ok|ok)\b(.*)$', output)
    good = [rest for how, rest in lines if how == 'ok']
    skipped = sum('# SKIP' in rest.upper() for rest in good) + bool(re.search(r'(?mi)^1\.\.0 # SKIP', output))
    plan = re.search(r'(?m)^1\.\.(\d+)', output)
    planned = max(len(lines), int(plan.group(1)) if plan else 0)
    return max(0, len(good) - skipped), planned - len(good), skipped


def tests(session):
    """The suite gpu: kernels against the host's, the device, ranks on one card."""
    if not session.machine.tests:
        session.row('suite gpu', 'skip', 'these programs have no such tests (built without CUDA)')
    for test in session.machine.tests:
        done = session.call(*test['command'], limit=max(60, test['timeout']), environment=test['environment'])
        passed, failed, skipped = tap_counts(done.output)
        bad = failed or done.rc not in (0, 77)
        verdict = 'FAIL' if bad else 'ok' if passed or not skipped else 'skip'
        first_bad = re.search(r'(?m)^\s*not ok.*$', done.output)
        why = '' if not bad else '; status %d; %s' % (done.rc, first_bad.group(0).strip()[:90] if first_bad
                                                     else done.tail()[:90])
        session.row(test['name'], verdict, '%d passed, %d failed, %d skipped in %.0f s%s' % (
            passed, failed, skipped, done.wall_s, why))


# ---- records of real PyTorch -------------------------------------------------------------------------

def recorder(session, name, output, options, limit=None):
    """Runs tests/oracle/gpu/record_NAME.py; None where there is no PyTorch for it."""
    machine = session.machine
    if not machine.python:
        session.row(name, 'skip', 'no PyTorch here')
        return None
    program = os.path.join(machine.root, 'tests', 'oracle', 'gpu', 'record_%s.py' % name)
    device = 'cpu' if session.dry else 'cuda'
    return session.call(machine.python, '-B', program, '--device', device, '--output', output, *options,
                        limit=limit, ours=False)


def memory(session):
    """All cases from one process, which imports PyTorch once; each is then held against its plan."""
    machine = session.machine
    if not machine.python:
        session.row('memory', 'skip', 'no PyTorch here')
        return
    cases = MEMORY[:2] if session.dry else MEMORY
    paths = {name: session.path('records', 'memory-%s.jsonl' % name) for name, _ in cases}
    listed = session.path('work', 'memory-cases')
    with open(listed, 'w', encoding='utf-8') as file:
        for name, options in cases:
            file.write('%s\t--device %s %s\n' % (paths[name], 'cpu' if session.dry else 'cuda', options))
    program = os.path.join(machine.root, 'tests', 'oracle', 'gpu', 'record_memory.py')
    done = session.call(machine.python, '-B', program, '--each', listed, '--seconds', '%.0f' %
                        max(1, session.remaining() - 25), limit=session.remaining() - 5, ours=False)
    for name, path in paths.items():
        if not os.path.exists(path):
            tried = path + ': status' in done.output
            session.row(name, 'FAIL' if tried else 'skip', 'the recorder; the log says why' if tried else
                        'no time is left')
            continue
        checked = session.call(machine.programs['check-memory'], path, limit=60)
        verdicts = re.findall(r'(?m)^  (\w+)\s+(?:holds|MISSES): off by (\S+) %', checked.output)
        session.row(name, {0: 'ok', 1: 'MISS'}.get(checked.rc, 'FAIL'),
                    ', '.join('%s %s %%' % pair for pair in verdicts) or checked.tail())


def timed_recorder(name, *more):
    """A part that records for as long as it has."""
    def part(session):
        path = session.path('records', name + '.jsonl')
        options = [option.replace('RECORDS', session.path('records')) for option in more]
        seconds = 2 if session.dry else max(2, session.remaining() - 15)
        done = recorder(session, name, path, ['--seconds', '%.0f' % seconds, *options])
        if done is None:
            return
        rows = rows_of(path)
        failed = sum('failed' in row for row in rows)
        left_out = len(rows[-1].get('end', {}).get('left_out', [])) if rows else 0
        session.row(name, 'FAIL' if done.rc else 'ok', '%d rows, %d failed, %d left out for time%s' % (
            max(0, len(rows) - 2 - failed), failed, left_out, '; ' + done.tail() if done.rc else ''))
    return part


def rows_of(path):
    rows = []
    if os.path.exists(path):
        with open(path, encoding='utf-8') as lines:
            for line in lines:
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    break  # cut off in the middle of a line
    return rows


host = timed_recorder('host')
kernels = timed_recorder('kernels', '--products', 'RECORDS/products.csv')
copies = timed_recorder('copies')


def torch_cluster(session):
    """The cluster file of PyTorch on this GPU, of the records above."""
    if session.dry:
        session.row('from the records', 'skip', 'a CPU\'s records make no cluster file')
        return
    machine = session.machine
    base = os.path.join(machine.data, 'clusters', 'h200-node.ini')
    output = session.path('torch-measured.ini')
    fit = ['--fit-gemm', machine.programs['fit-gemm']] if 'fit-gemm' in machine.programs else []
    done = session.call('python3', '-B', os.path.join(machine.root, 'tests', 'oracle', 'gpu', 'cluster_file.py'),
                        session.path('records'), '--base', base, '-o', output, '--foreshard',
                        machine.programs['foreshard'], *fit)
    session.row('from the records', 'FAIL' if done.rc else 'ok', done.tail())


# ---- our own -----------------------------------------------------------------------------------------

def calibrate(session):
    if session.dry:
        session.row('foreshard calibrate', 'skip', 'measures a GPU')
        return
    output = session.path('calibrated.ini')
    done = session.call(session.machine.programs['foreshard'], 'calibrate', '--device', 'cuda', '-o', output)
    if done.rc == 0 and os.path.exists(output):
        session.cluster = output
        session.row('foreshard calibrate', 'ok', done.tail())
    else:
        session.row('foreshard calibrate', 'FAIL', done.tail())


def benches(session):
    if session.dry:
        session.row('benchmarks', 'skip', 'of a GPU')
        return
    for bench in session.machine.benches:
        name = os.path.basename(bench)
        done = session.call(bench)
        with open(session.path('records', name + '.txt'), 'w', encoding='utf-8') as file:
            file.write(done.output)
        session.row(name, 'FAIL' if done.rc else 'ok', '%d lines; %s' % (done.output.count('\n'), done.tail()))
    if not session.machine.benches:
        session.row('benchmarks', 'skip', 'these programs have none of a GPU')


def sanitizer(session):
    """compute-sanitizer over the tests, the shortest first, as far as the time goes. It refuses some machines."""
    tool = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
    if session.dry or not os.path.exists(tool) or not session.machine.tests:
        session.row('memcheck', 'skip', 'no compute-sanitizer, or nothing of a GPU to run')
        return
    for test in sorted(session.machine.tests, key=lambda t: t['timeout']):
        if session.remaining() < 5:
            session.row('memcheck ' + test['name'], 'skip', 'no time is left')
            continue
        done = session.call(tool, '--error-exitcode', '9', '--print-limit', '20', *test['command'],
                            environment=test['environment'])
        errors = re.search(r'ERROR SUMMARY: (\d+) error', done.output)
        refused = 'not supported' in done.output and not errors
        verdict = 'skip' if refused else 'ok' if errors and errors.group(1) == '0' and done.rc != 9 else 'FAIL'
        session.row('memcheck ' + test['name'], verdict, errors.group(0) if errors else done.tail())
