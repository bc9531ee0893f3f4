"""tests/gpu/parts.py - what is done where a GPU is: facts, records of PyTorch, calibration, benchmarks.

matrix.py holds the comparisons of prediction and measurement, suites.py the tests. Without a GPU (--dry) each part does as much of
the same as a CPU can: tests skip, recorders run in small if there is a PyTorch, plans are played on the host.
"""
import json
import os
import re
import shutil
import sys

import machine as machines
import suites

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


def how(done):
    """The verdict on a command; of one that was ended with its part nothing is said."""
    return 'skip' if done.is_cut else 'FAIL' if done.rc else 'ok'


# ---- facts -------------------------------------------------------------------------------------

# Programs that say what this machine is, for the log.
TELLING = (['nvidia-smi'], ['nvidia-smi', '-q', '-d', 'CLOCK,POWER,MEMORY,PERFORMANCE,COMPUTE,ECC'], ['nvcc', '--version'],
           ['lscpu'], ['free', '-g'], ['uname', '-a'],
           ['sh', '-c', 'pip list 2>/dev/null | grep -i -E "torch|nvidia|triton"'])


def info(session):
    machine = session.machine
    gpu = machines.gpu()
    session.row('programs', '', machine.what)
    session.row('GPU', '' if gpu else 'skip', ', '.join('%s %s' % item for item in gpu.items()) if gpu else 'none here')
    session.row('PyTorch', '' if machine.python else 'skip', machine.torch_version or 'no Python has torch 2.11')
    if gpu and not session.dry:
        session.row('the GPU is held open', '' if machine.holder else 'skip', 'by a process of its own, so that none has to '
                    'set it up' if machine.holder else 'NVML does not let it; each program may have to set it up')
    mode = (gpu or {}).get('compute_mode', 'Default')
    if mode != 'Default':
        session.row('compute mode', 'MISS', '%s: ranks cannot share this GPU, which much of this has them do; nvidia-smi -c '
                    'DEFAULT lets them' % mode)
    loaded = machine.loaded()
    missing = machine.lacks()
    session.row('shared libraries', 'FAIL' if missing else 'ok' if loaded else 'skip', ', '.join(missing) or (
        'all are found' if loaded else 'neither ldd nor the loader tells them'))
    for what, without in (('cuDNN', 'attention goes by own kernels, without tensor cores'),
                          ('NCCL', "ranks that share a card go by way of the host's memory")):
        later = machine.not_loaded_later(what)
        session.row(what, 'MISS' if later else 'ok', '%s: %s' % (', '.join(later), without) if later else 'all of it is found')
    of_cuda = sorted({path for _, library, path in loaded if re.match(r'lib(cu|nccl)', library)})
    session.row('of CUDA', '', ', '.join(of_cuda) or 'none')
    facts = [lambda command=command: session.call(*command, limit=20, ours=False) for command in TELLING
             if shutil.which(command[0])]
    session.beside(facts)  # pip alone may take ten seconds
    if not session.dry and not machine.refused:
        first_program(session)


def first_program(session):
    """Whether a toy trains on the GPU at all, and what the first program there takes until it has: libraries may come from
    a slow disk, and a driver that nobody has asked yet sets the GPU up. Then one in halves, whose attention is cuDNN's."""
    if 'foreshard-exec' not in session.machine.programs:
        return
    # It may take the others' time: where this fails, they need not begin.
    session.extend(60)
    done = toy(session, '')
    session.trains = done.rc == 0
    session.row('a toy trains', 'FAIL' if done.rc else 'ok', done.tail() if done.rc else
                'the first program on this GPU, in %.1f s' % done.wall_s)
    if done.rc:
        look_closer(session)
        return
    done = toy(session, '--model-dtype bf16 --kernels fused')
    session.row('a toy in halves trains', 'FAIL' if done.rc else 'ok', done.tail() if done.rc else
                'with cuDNN\'s plans, in %.1f s' % done.wall_s)
    if done.rc and not toy(session, '--model-dtype bf16 --kernels fused', environment=WITHOUT_CUDNN).rc:
        session.machine.variables.update(WITHOUT_CUDNN)
        session.row('without cuDNN it does', 'MISS', 'so all of this plays with own attention, slow where sequences are '
                    'long; a later call without info needs FORESHARD_NO_CUDNN=1')


WITHOUT_CUDNN = {'FORESHARD_NO_CUDNN': '1'}


def toy(session, options, before=(), environment=None, limit=60):
    """Three steps of a toy on one rank, which is forked: MPI would have words of its own behind those that tell what failed.
    `before` it stands what looks on."""
    plan = session.path('work', 'one.plan')
    planned = session.call(session.machine.programs['foreshard'], 'plan', 'gpt-toy', '-n', '1', '--sharding', 'none',
                           *options.split(), '-o', plan, limit=20)
    return planned if planned.rc else session.call(
        *before, session.machine.programs['foreshard-exec'], plan, '--device', 'cuda', '--local-ranks', 1, '--steps', 3,
        limit=limit, environment=environment)


def look_closer(session):
    """Of a toy that fails: the log shall say which call, and which kernel's which access, for whoever mends it."""
    session.extend(60)
    done = toy(session, '', environment={'CUDA_LAUNCH_BLOCKING': '1'}, limit=30)
    session.row('a call at a time', '', done.tail() if done.rc else 'it trains')
    if os.path.exists(sanitizer_tool()):
        done = toy(session, '', before=(sanitizer_tool(), '--target-processes', 'all', '--print-limit', '5'), limit=30)
        told = re.findall(r'(?m)^=+ (Invalid .*|Program hit .*|Error: .*|.*at .*\+0x\w+ in .*)$', done.output)
        session.row('as compute-sanitizer sees it', '', ', '.join(text.strip() for text in told[:3]) or done.tail())


def sanitizer_tool():
    return shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'


# ---- records of real PyTorch -------------------------------------------------------------------------

def has_torch(session, name):
    """Whether there is a PyTorch to record; its import began when the command did, and here it is waited for."""
    importing = session.machine.importing
    why = importing.fails() if importing else 'no PyTorch here'
    if why:
        session.row(name, 'skip', why)
    return not why


def recorder(session, name, output, options, limit=None):
    """Runs tests/oracle/gpu/record_NAME.py; None where there is no PyTorch for it."""
    machine = session.machine
    if not has_torch(session, name):
        return None
    program = os.path.join(machine.root, 'tests', 'oracle', 'gpu', 'record_%s.py' % name)
    device = 'cpu' if session.dry else 'cuda'
    return session.call(machine.python, '-B', program, '--device', device, '--output', output, *options,
                        limit=limit, ours=False)


def memory(session):
    """All cases from one process, which imports PyTorch once; each is then held against its plan."""
    machine = session.machine
    if not has_torch(session, 'memory'):
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
            session.row(name, 'FAIL' if tried else 'skip', 'the recorder: ' + last_of(done.output, path) if tried else
                        'no time is left')
            continue
        session.attempt(name, held_against_plan, session, name, path)


def last_of(output, path):
    """What the recorder of that file said last before its status."""
    before = output.split(path + ': status')[0].rstrip().split('\n')
    return before[-1].strip()[:120] or 'the log says why'


def held_against_plan(session, name, path):
    checked = session.call(session.machine.programs['check-memory'], path, limit=60)
    if checked.is_cut:
        session.row(name, 'skip', 'recorded; not compared in the time that was left')
        return
    verdicts = re.findall(r'(?m)^  (\w+)\s+(?:holds|MISSES): off by (\S+) %', checked.output)
    if checked.rc in (0, 1):
        session.figure('PyTorch', (name, checked.rc == 0))
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
        session.row(name, how(done), '%d rows, %d failed, %d left out for time%s' % (
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
    base = os.path.join(machine.data, 'clusters', machine.cluster + '.ini')
    output = session.path('torch-measured.ini')
    fit = ['--fit-gemm', machine.programs['fit-gemm']] if 'fit-gemm' in machine.programs else []
    done = session.call(sys.executable, '-B', os.path.join(machine.root, 'tests', 'oracle', 'gpu', 'cluster_file.py'),
                        session.path('records'), '--base', base, '-o', output, '--foreshard',
                        machine.programs['foreshard'], *fit)
    session.row('from the records', how(done), done.tail())


# ---- our own -----------------------------------------------------------------------------------------

CALIBRATE_SECONDS = 90  # at most; README.md reckons with 62


def calibrate(session):
    if session.dry:
        session.row('foreshard calibrate', 'skip', 'measures a GPU')
        return
    output = session.path('calibrated.ini')
    # It may take the others' time: predictions are worth little without it.
    session.extend(CALIBRATE_SECONDS)
    done = session.call(session.machine.programs['foreshard'], 'calibrate', '--device', 'cuda', '-o', output)
    if done.rc == 0 and os.path.exists(output):
        session.cluster = output
        session.row('foreshard calibrate', 'ok', done.tail())
    else:
        session.row('foreshard calibrate', 'skip' if done.is_cut else 'FAIL', done.tail() or 'not through after %.0f s' % done.wall_s)
        keep_unfinished(session, output)


def keep_unfinished(session, output):
    """What a calibration that was cut off, or failed at its end, has left is of this GPU: it is kept, and predicted with."""
    if os.path.exists(output + '.unfinished'):
        os.replace(output + '.unfinished', output)
        with open(output, encoding='utf-8') as file:
            told = re.search(r'(?m)^# Unfinished: (.*)\.$', file.read())
        session.cluster = output
        session.row('what it left', '', told.group(1) if told else 'calibrated.ini')


# Lines of bench/kernels-cuda.c that the goal names: AdamW, norms and casts.
AT_COPY_SPEED = ('adam (fused, fp32)', 'layernorm', 'add_layernorm', 'layernorm_backward', 'rmsnorm', 'rmsnorm_backward',
                 'rmsnorm of heads', 'rmsnorm_backward of heads', 'cast fp32 to bf16', 'cast bf16 to fp32')


def shares_of_copy(output):
    """{kernel: its bytes a second as a share of a copy's}, as the benchmark prints them."""
    return {name.strip(): float(percent) / 100
            for name, percent in re.findall(r'(?m)^(\S.*?) +\S+ ms +\S+ GB/s +(\S+) % of the copy$', output)}


def benches(session):
    if session.dry:
        session.row('benchmarks', 'skip', 'of a GPU')
        return
    for bench in session.machine.benches:
        name = os.path.basename(bench)
        done = session.call(bench)
        with open(session.path('records', name + '.txt'), 'w', encoding='utf-8') as file:
            file.write(done.output)
        session.row(name, how(done), '%d lines; %s' % (done.output.count('\n'), done.tail()))
        shares = shares_of_copy(done.output)
        for kernel in AT_COPY_SPEED:
            if kernel in shares:
                session.figure('of the copy', (kernel, shares[kernel]))
    if not session.machine.benches:
        session.row('benchmarks', 'skip', 'these programs have none of a GPU')


SANITIZED_BESIDE = 4  # of kernels' tests, for the tool's own work is the processor's


def sanitizer(session):
    """compute-sanitizer over the tests: memcheck, then races in shared memory, as far as the time goes. It refuses some
    machines. The ranks' test starts processes, which it does not follow, and large arrays would take all the time."""
    tool = sanitizer_tool()
    if session.dry or not os.path.exists(tool) or not session.machine.tests:
        session.row('memcheck', 'skip', 'no compute-sanitizer, or nothing of a GPU to run')
        return
    kernels_alone = [test for test in session.machine.tests
                     if test['name'].startswith('kernels-cuda/') and test['name'] != 'kernels-cuda/large']
    for check in ('memcheck', 'racecheck'):
        works = [lambda check=check, test=test: session.attempt(test['name'], sanitized, session, tool, check, test)
                 for test in kernels_alone]
        session.beside(suites.dealt_out(works, SANITIZED_BESIDE if suites.has_cores() else 1))


def sanitized(session, tool, check, test):
    name = '%s %s' % (check, test['name'])
    if session.remaining() < 5:
        session.row(name, 'skip', 'no time is left')
        return
    # Of calls that fail the tests themselves tell; those of libraries, which try what a GPU may refuse, are no error.
    quiet = ['--report-api-errors', 'no'] if check == 'memcheck' else []
    done = session.call(tool, '--tool', check, *quiet, '--error-exitcode', '9', '--print-limit', '20', *test['command'],
                        environment=test['environment'])
    verdict, why = judged_by_sanitizer(done)
    session.row(name, verdict, why)
    if verdict in ('ok', 'FAIL'):
        session.figure('sanitizer', (name, verdict == 'ok'))


def judged_by_sanitizer(done):
    """(verdict, why)."""
    found = re.search(r'(ERROR|RACECHECK) SUMMARY: (\d+) (error|hazard)s?', done.output)
    if not found:
        refused = re.search(r'(?i)not supported|error 999|failed to initialize', done.output)
        return ('skip', 'refused here: ' + refused.group(0)) if refused else (
            'skip', 'not through in its time') if done.rc == 124 else ('FAIL', done.tail())
    return ('ok' if found.group(2) == '0' and done.rc != 9 else 'FAIL'), found.group(0)
