"""tests/gpu/machine.py, and what `run` makes of it: a GPU's machine, as far as one without a GPU can tell.

    test-machine.py SOURCE-ROOT BUILD-FOLDER
"""
import os
import subprocess
import sys
import tempfile
import time
import types

from trying import BUILD, HERE, ROOT, RUN, module_of, program, run, unlike

import machine as machines
import parts
from tap import Tap


def driver_case(tap, folder):
    """Without nvidia-smi the driver is asked; one that is too old for these programs is told of before they begin."""
    case = '/gpu/machine/an old driver is told of'
    if machines.gpu() or not machines.Built(BUILD, None).needs_cuda():
        tap.skip(case, 'there is a GPU, or these programs have no CUDA')
        return
    needed = machines.Built(BUILD, None).needs_cuda()
    environment = os.environ | {'LD_LIBRARY_PATH': os.path.join(BUILD, 'tests', 'gpu'), 'FORESHARD_TORCH_PYTHON': '',
                                'FORESHARD_DRIVER_TAKES': '12040'}
    complaints = unlike(run(RUN, '--build', BUILD, env=environment), 2, 'driver (no nvidia-smi says which) takes programs '
                        'of CUDA 12.4, and these are of CUDA %d' % needed)
    # With a PyTorch, which may well be made for that driver, its parts are done all the same.
    python = program(os.path.join(folder, 'python-of-torch'), '#!/bin/sh\necho 2.11.0\n')
    complaints += unlike(run(RUN, '--build', BUILD, '--parts', 'info,tests,copies', '--minutes', '1', '--output',
                             os.path.join(folder, 'old-driver'),
                             env=environment | {'FORESHARD_TORCH_PYTHON': python}), 0,
                         'skip  all of it: driver (no nvidia-smi', 'ok    copies: ')
    told = run(sys.executable, '-B', '-c', 'import machine; print(machine.gpu(), machine.driver_takes())', cwd=HERE,
               env=environment | {'FORESHARD_DRIVER_TAKES': '%d010' % needed})
    complaints += unlike(told, 0, "'name': 'a GPU of no maker'", "'memory.total': '81920 MiB'", '(%d, 1)' % needed)
    tap.case(case, complaints)


# Stands for nvidia-smi: answers what it is told to know, and refuses the rest as the real one does.
SMI = r'''#!%s
import sys
known = {'name': 'a GPU', 'driver_version': '580.00', 'memory.total': '1 MiB', 'power.limit': '1 W',
         'clocks.max.sm': '1 MHz', 'clocks.max.mem': '1 MHz', 'pstate': 'P0'} | %r
wanted = [word.split('=')[1] for word in sys.argv if word.startswith('--query-gpu=')][0].split(',')
missing = [name for name in wanted if name not in known]
if missing:
    print('Field "%%s" is not a valid field to query.' %% missing[0])
    sys.exit(2)
print(', '.join(known[name] for name in wanted))
'''


def machine_case(tap, folder):
    """Tools that are missing, hang, or know less than others cost no more than what they would have said."""
    complaints, modes = [], {'compute_mode': 'Exclusive_Process', 'mig.mode.current': 'Disabled', 'ecc.mode.current': 'Enabled'}
    path = os.environ['PATH']
    for more in ({}, modes):
        program(os.path.join(folder, 'nvidia-smi'), SMI % (sys.executable, more))
        os.environ['PATH'] = folder
        gpu = machines.gpu()
        complaints += [] if gpu and gpu['name'] == 'a GPU' and gpu.get('compute_mode') == more.get('compute_mode') else [str(gpu)]
        session = types.SimpleNamespace(dry=True, machine=machines.Built(BUILD, None), rows=[], call=lambda *_, **__: None,
                                        beside=lambda works: [work() for work in works])
        session.machine.torch_version = ''
        session.row = lambda name, verdict, value='', rows=session.rows: rows.append((name, verdict, value))
        parts.info(session)
        told = [value for name, verdict, value in session.rows if (name, verdict) == ('compute mode', 'MISS')]
        complaints += [] if bool(told) == bool(more) else ['of %s: %s' % (more, told)]
        loaded = [library for _, library, _ in session.machine.loaded()]  # there is no ldd on this path
        if os.path.exists(machines.LOADER) and 'libc.so.6' not in loaded:
            complaints.append('without ldd: %s' % loaded)
    os.environ['PATH'] = path
    began = time.monotonic()
    said = machines.output_of('sh', '-c', 'echo begun; trap "" TERM; sleep 30 & wait', timeout=0.5)
    complaints += ['what hangs says %r after %.0f s' % (said, time.monotonic() - began)] * (
        said != '' or time.monotonic() - began > 10)
    tap.case('/gpu/machine/a machine may lack tools', complaints)


def like_case(tap):
    """Until it is measured, a GPU is predicted as the cluster file says that its name is in; each of those is there."""
    wanted = {'NVIDIA H100 80GB HBM3': 'dgx-h100', 'NVIDIA H200': 'h200-node', 'NVIDIA H100 PCIe': 'h100-pcie',
              'NVIDIA GH200 480GB': 'gh200-alps', 'NVIDIA A100-SXM4-80GB': 'a100-node', 'a GPU of no maker': 'h200-node'}
    complaints = ['%s: %s' % (name, machines.cluster_like({'name': name})) for name, cluster in wanted.items()
                  if machines.cluster_like({'name': name}) != cluster]
    complaints += ['there is no ' + name for _, name in machines.LIKE
                   if not os.path.exists(os.path.join(ROOT, 'models', 'clusters', name + '.ini'))]
    complaints += [] if machines.cluster_like(None) == 'h200-node' else ['without a GPU']
    tap.case('/gpu/machine/a GPU is predicted as one like it', complaints)


def torch_case(tap, folder):
    """A Python that hangs is asked once, however often it is named, and another one is found. What imports PyTorch while
    other things are done says why it cannot, and none waits long for what hangs."""
    asked = os.path.join(folder, 'asked')
    for name, words in (('hangs', 'echo >> %s; sleep 30' % asked), ('python3', 'echo 2.11.0+cu130')):
        program(os.path.join(folder, name), '#!/bin/sh\n%s\n' % words)
    hangs, old = os.path.join(folder, 'hangs'), (os.environ['PATH'], machines.ASKING_SECONDS, sys.executable)
    os.environ['PATH'], machines.ASKING_SECONDS, sys.executable = folder + ':' + old[0], 0.5, hangs
    os.environ['FORESHARD_TORCH_PYTHON'] = hangs
    found = machines.python_with_torch()
    os.environ['FORESHARD_TORCH_PYTHON'] = ''
    complaints = [] if machines.python_with_torch() == (None, '') else ['one is found that nobody named']
    os.environ['PATH'], machines.ASKING_SECONDS, sys.executable = old
    del os.environ['FORESHARD_TORCH_PYTHON']
    with open(asked, encoding='utf-8') as file:
        times = len(file.readlines())
    complaints += [] if times == 1 and found == (os.path.join(folder, 'python3'), '2.11.0+cu130') else [
        'asked %d times, found %s' % (times, found)]
    program(os.path.join(folder, 'breaks'), '#!/bin/sh\necho Traceback >&2; echo ImportError: libcudart.so.13 >&2; exit 1\n')
    kept, machines.IMPORT_SECONDS = machines.IMPORT_SECONDS, 1
    for name, wanted in (('python3', ''), ('breaks', 'it cannot be imported: ImportError: libcudart.so.13'),
                         ('hangs', 'its import has not ended after 1 s')):
        session = types.SimpleNamespace(machine=types.SimpleNamespace(importing=machines.Import(os.path.join(folder, name))),
                                        row=lambda *row: complaints.append('a row: %s' % (row,)) if row[2] != wanted else None)
        began = time.monotonic()
        told = [parts.has_torch(session, 'memory') for _ in range(2)]
        complaints += [] if told == [not wanted] * 2 and time.monotonic() - began < 10 else ['%s: %s' % (name, told)]
    machines.IMPORT_SECONDS = kept
    tap.case('/gpu/machine/an import that hangs is waited for once', complaints)


def holder_case(tap):
    """The GPU is held open as long as the command lives, however it ends; a machine without NVML loses no time over it."""
    code = 'import machine, os; holder = machine.held_open(); print(holder.pid if holder else 0, flush=True); os._exit(0)'
    nvml = os.path.join(BUILD, 'tests', 'emulator')

    def held(folder):
        done = run(sys.executable, '-B', '-c', code, cwd=HERE, env=os.environ | {'LD_LIBRARY_PATH': folder})
        return int(done.stdout or -1)
    complaints = [] if held('/nowhere') == 0 or machines.gpu() else ['it is held without NVML']
    began, old, os.environ['LD_LIBRARY_PATH'] = time.monotonic(), os.environ.get('LD_LIBRARY_PATH', ''), nvml
    holder = machines.held_open()
    os.environ['LD_LIBRARY_PATH'] = old
    if holder:
        time.sleep(0.3)
        complaints += [] if holder.poll() is None else ['what holds it does not stay']
        holder.stdin.close()
        complaints += [] if holder.wait(5) == 0 else ['its status is %d' % holder.returncode]
        holder.stdout.close()
    else:
        complaints.append('it is not held after %.1f s' % (time.monotonic() - began))
    left = held(nvml)
    for _ in range(50):
        if not os.path.exists('/proc/%d' % left):
            break
        time.sleep(0.1)
    else:
        complaints.append('it is held when the command has ended')
    tap.case('/gpu/machine/the GPU is held open meanwhile', complaints)


def fork_case(tap, folder):
    """A process that has begun with CUDA may not fork: only the ranks themselves do. (cuBLASLt loads the driver as it is
    loaded itself; that is no beginning.)"""
    case = '/gpu/machine/ranks are forked before CUDA begins'
    machine = machines.Built(BUILD, None)
    if machines.gpu() or not machine.needs_cuda():
        tap.skip(case, 'there is a GPU, or these programs have no CUDA')
        return
    plan, begun = os.path.join(folder, 'fork.plan'), os.path.join(folder, 'begun')
    complaints = unlike(run(machine.programs['foreshard'], 'plan', 'gpt-toy', '-n', '2', '-o', plan), 0)
    environment = machine.environment()
    environment |= {'FORESHARD_DRIVER_BEGUN': begun, 'LD_LIBRARY_PATH': ':'.join(
        [os.path.join(BUILD, 'tests', 'gpu'), environment.get('LD_LIBRARY_PATH', '')])}
    with subprocess.Popen([machine.programs['foreshard-exec'], plan, '--device', 'cuda', '--local-ranks', '2'], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        output, _ = process.communicate()
    if process.returncode != 1 or 'no GPU can be used' not in output:
        complaints.append('status %d: %s' % (process.returncode, output[-200:]))
    numbers = open(begun, encoding='utf-8').read().split() if os.path.exists(begun) else []
    if not numbers:
        complaints.append('no rank has begun with CUDA')
    if str(process.pid) in numbers:
        complaints.append('the process that forks has begun with CUDA')
    tap.case(case, complaints)


def later_case(tap, folder):
    """What is loaded only when it is wanted is looked for beforehand."""
    parts_of_it = machines.LOADED_LATER['cuDNN']
    machine = types.SimpleNamespace(environment=lambda: {'LD_LIBRARY_PATH': '/nowhere:' + folder},
                                    programs={'foreshard-cuda.so': '/x/foreshard-cuda.so'})
    known, machines.known_to_loader = machines.known_to_loader, lambda: '\tlibnvrtc.so.13 (libc6,x86-64) => /x\n'

    def missed(what):
        return machines.Machine.not_loaded_later(machine, what)
    complaints = [] if missed('cuDNN') == list(parts_of_it[:-1]) else ['not all are missed']
    complaints += [] if missed('NCCL') == ['libnccl.so'] else ['NCCL is not missed']
    for part in parts_of_it[1:]:
        with open(os.path.join(folder, part + '.9'), 'w', encoding='utf-8'):
            pass
    complaints += [] if missed('cuDNN') == [parts_of_it[0]] else ['the one is not missed']
    machine.programs = {'foreshard': '/x/foreshard'}
    complaints += ['asks for %s without a GPU\'s part' % part for part in missed('cuDNN')]
    machines.known_to_loader = known
    tap.case('/gpu/machine/what is loaded later is looked for', complaints)


def missing_case(tap):
    """What keeps the GPU's part from being loaded is told of beforehand; what another program lacks is no reason to skip all."""
    command = module_of(RUN)
    machine = types.SimpleNamespace(needs_cuda=lambda: 13, lacks=lambda: ['check-memory lacks libx.so'])
    complaints = ['skips all: ' + command.missing(machine, False)] if command.missing(machine, False) else []
    machine.lacks = lambda: ['check-memory lacks libx.so', 'foreshard-cuda.so lacks libcublasLt.so.13']
    told = command.missing(machine, False)
    complaints += [] if told.startswith('foreshard-cuda.so lacks libcublasLt.so.13, which comes with CUDA 13') else [told]
    complaints += ['a dry run is refused'] if command.missing(machine, True) else []
    tap.case('/gpu/machine/a library that is missing is told of', complaints)


def main():
    tap = Tap()
    like_case(tap)
    holder_case(tap)
    missing_case(tap)
    with tempfile.TemporaryDirectory() as folder:
        machine_case(tap, folder)
        driver_case(tap, folder)
        torch_case(tap, folder)
        fork_case(tap, folder)
        later_case(tap, folder)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
