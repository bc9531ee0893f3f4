"""tests/oracle/test-traced-run.py FORESHARD SOURCE - traced networks trained on CPU ranks, beside PyTorch's own training.

The programs from the same first values on the same samples: losses of five steps of AdamW are PyTorch's on one process,
on 1, 2 and 4 ranks under FSDP2, FSDP1 and DDP, checkpointed or not, and memory is the plan's at every instruction. Of batch
norm, whose ranks see a batch each, one rank alone. Needs PyTorch 2.13, python3's or that which FORESHARD_TORCH_PYTHON names."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

STEPS, BATCH = 5, 4
LOSSES = 5e-7  # relative; the most that was seen is 1.9e-7
HALF = 2e-2    # bf16 against PyTorch's fp32: losses are rounded to 2^-8; the most that was seen is 5.2e-3
STRATEGIES = ('-n 1 --sharding none', '-n 2', '-n 2 --sharding none', '-n 2 --flavour fsdp1',
              '-n 4 --checkpointing full', '-n 4 --sharding grad-op --wrap whole', '-n 2 --accumulate 2 --micro-batch 1')
AT_ONCE = tuple(words for words in STRATEGIES if 'fsdp1' not in words)  # of parameters above 1 MiB (exec/README.md)
OF_NESTED = tuple(words for words in STRATEGIES if 'checkpointing' not in words)  # blocks within blocks
PROGRAMS = {'gpt_toy': STRATEGIES, 'llama_toy': STRATEGIES, 't5_toy': STRATEGIES, 'vit': STRATEGIES, 'dit': STRATEGIES,
            'scan': STRATEGIES, 'gated': STRATEGIES, 'routed': STRATEGIES, 'masked': STRATEGIES, 'autoencoder': STRATEGIES,
            'own_functions': STRATEGIES, 'pair': OF_NESTED, 'wide': AT_ONCE, 'convnet': STRATEGIES[:1], 'video': STRATEGIES[:1]}

# PyTorch's side, in one process, since it takes seconds to start: FOLDER PROGRAMS TOOLS NAME... writes weights and samples
# to FOLDER/NAME, and of each program a line of its losses.
TRAINS = '''
import json, os, runpy, sys
sys.path[:0] = [sys.argv[3], sys.argv[2]]
import torch, values
torch.set_num_threads(1)

def train(folder, program_path):
    torch.manual_seed(0)
    program = runpy.run_path(program_path)
    network = program["model"]()
    for parameter in network.parameters():  # what begins as a constant would hide what becomes of it
        if bool((parameter == parameter.flatten()[0]).all()):
            torch.nn.init.normal_(parameter, float(parameter.detach().flatten()[0]), 0.02)
    values.write(folder + "/weights.safetensors", values.of_network(network))
    batch, tensors = values.of_batch(program["batch"], STEPS * BATCH)
    values.write(folder + "/samples.safetensors", tensors)
    loss_of = program.get("loss", lambda network, *batch: network(*batch))
    optimizer, losses = torch.optim.AdamW(network.parameters(), lr=1e-3), []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(network, *(t[step * BATCH:(step + 1) * BATCH] for t in batch))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

for name in sys.argv[4:]:
    folder = os.path.join(sys.argv[1], name)
    os.mkdir(folder)
    print(json.dumps(train(folder, os.path.join(sys.argv[2], name + ".py"))), flush=True)
'''


def python_with_torch():
    python = os.environ.get('FORESHARD_TORCH_PYTHON', 'python3')
    ask = 'import torch; raise SystemExit(not torch.__version__.startswith("2.13."))'
    done = subprocess.run([python, '-c', ask], capture_output=True, check=False)
    return python if done.returncode == 0 else None


def run(words, fault, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        fault.append('%s: %s' % (' '.join(words), done.stderr.strip()))
    return done.stdout if done.returncode == 0 else None


def worst(a, b):
    return max(abs(x / y - 1) for x, y in zip(a, b, strict=True))


def hold_strategy(foreshard, network, folder, strategy, torch_losses, bound):
    """What is wrong, in words; nothing is."""
    wrong, words = [], strategy.split()
    if '--micro-batch' not in words:
        words += ['--micro-batch', str(BATCH // int(words[1]))]
    given = ['--load', folder + '/weights.safetensors', '--data', folder + '/samples.safetensors']
    said = run([foreshard, 'run', network, *words, *given, '--steps', str(STEPS), '--json', '--trace', folder + '/m.trace'], wrong)
    if said is None:
        return wrong
    off = worst(json.loads(said)['losses'], torch_losses)
    wrong += [] if off <= bound else ['%s: losses are off by %.1e' % (strategy, off)]
    run([foreshard, 'predict', network, *words, '--cluster', 'this-machine', '--steps', str(STEPS), '--trace',
         folder + '/p.trace'], wrong)
    said = run([foreshard, 'compare', folder + '/p.trace', folder + '/m.trace', '--json'], wrong)
    verdict = json.loads(said)['verdict'] if said else ''
    what = ('allocated',) if 'fsdp1' in strategy else ('allocated', 'active', 'reserved')  # FSDP1's frees are a matter of time
    return wrong + ['%s: memory is not as predicted: %s' % (strategy, verdict)
                    for kind in what if kind + ' equal at all ' not in verdict]


def hold(tap, foreshard, here, folder, name, said):
    """said: its losses, as PyTorch's process printed them."""
    wrong = [] if said else ['PyTorch has not trained it']
    network = os.path.join(here, 'traced', name + '.network')
    for strategy in PROGRAMS[name] if said else ():
        wrong += hold_strategy(foreshard, network, folder, strategy, json.loads(said), LOSSES)
    bf16 = os.path.join(here, 'traced', name + '-bf16.network')
    if said and os.path.exists(bf16):
        wrong += hold_strategy(foreshard, bf16, folder, PROGRAMS[name][0].replace('--sharding none', '')
                               + ' --param-dtype bf16 --reduce-dtype fp32', json.loads(said), HALF)
    tap.case('%s trains as PyTorch trains it, in the predicted memory' % name, wrong)


def hold_all(tap, python, foreshard, source):
    here = os.path.join(source, 'tests', 'oracle')
    script = TRAINS.replace('STEPS', str(STEPS)).replace('BATCH', str(BATCH))
    with tempfile.TemporaryDirectory() as folder:
        words = [python, '-B', '-W', 'ignore', '-c', script, folder, os.path.join(here, 'programs'),
                 os.path.join(source, 'models', 'pytorch'), *PROGRAMS]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as trains:
            for name in PROGRAMS:
                hold(tap, foreshard, here, os.path.join(folder, name), name, trains.stdout.readline())


def refuses(tap, foreshard, source):
    """What has no kernel, or no numbers, is named before training."""
    cases = (('encoder', 'with dropout'), ('dit', 'buffer positions stand in no trace'))
    for name, said in cases:
        network = os.path.join(source, 'tests', 'oracle', 'traced', name + '.network')
        done = subprocess.run([foreshard, 'run', network, '-n', '1', '--sharding', 'none'], capture_output=True, text=True,
                              check=False)
        wrong = [] if done.returncode == 2 and said in done.stderr else ['status %d: %s' % (done.returncode, done.stderr)]
        tap.case('%s is refused: %s' % (name, said), wrong)


SHAPES = 'shapes that do not go together'
PRODUCT = 'mm 0/fp32/96,32/1,96/0 1/fp32/32,64 > 2/fp32/96,64'
# (network, what stands in its plan, what is written there instead, what is said)
EDITED = (('gpt_toy', 'addmm 0/fp32/192 1/fp32/32,64', 'addmm 0/fp32/192 1/fp32/3200,64', 'reaches beyond its operands'),
          ('gpt_toy', 'addmm 0/fp32/192 1/fp32/32,64', 'addmm 0/fp32/192 1/fp32/32,32', SHAPES),
          ('gpt_toy', 'addmm 0/fp32/192 1', 'addmm 0/fp32/2/96/0 1', SHAPES),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu 0/fp32/1,32,255', SHAPES),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu 9/fp32/1,32,256', 'reaches beyond its operands'),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu 0/fp32/1,x,256', "'0/fp32/1,x,256' is no argument"),
          ('gpt_toy', '_log_softmax 0/fp32/32,96 1 ', '_log_softmax 0/fp32/32,96 7 ', SHAPES),
          ('gpt_toy', '_log_softmax 0/fp32/32,96 1 ', '_log_softmax 0/fp32/32,0 1 ', SHAPES),
          ('gpt_toy', '1/fp32/64,96/1,64/0 > 2/fp32/32,96', '1/fp32/64,96/1,64/0 > 2/fp32/32,2', SHAPES),
          ('gpt_toy', '1,32,64 [64] 1/fp32/64', '1,32,64 [0] 1/fp32/64', SHAPES),
          ('gpt_toy', '1,32,64 [64] 1/fp32/64', '1,32,64 [32] 1/fp32/64', SHAPES),
          ('gpt_toy', '1/int64/1,32 -1 false', '1/int64/1,31 -1 false', SHAPES),
          ('gpt_toy', 'nll_loss_forward 0/fp32/32,96', 'nll_loss_forward 0/fp32/16,96', SHAPES),
          ('gpt_toy', '- true 0.0 true - > 4/fp32/1,2,32,32/', '- true 0.0 true - > 4/fp32/1,2,32,31/', SHAPES),
          ('gpt_toy', '0/fp32/1,2,32,32/0,32,192,1/64', '0/fp32/1,2,32,16/0,32,192,1/64', SHAPES),
          ('gpt_toy', '[0] true > 1/fp32/1,192', '[0] true > 1/fp32/192,1/1,500000/0', SHAPES),
          ('gpt_toy', PRODUCT, 'mse_loss 0/fp32/96,32 1/fp32/32,64 1 > 2/fp32/-', SHAPES),
          ('gpt_toy', PRODUCT, 'scatter.value 0/fp32/2,32 0 1/int64/1,1 1 > 2/fp32/96,64', SHAPES),
          ('vit', 'select_backward 0/fp32/1,64 [', 'select_backward 0/fp32/32,2/1,32/0 [', SHAPES),
          ('vit', 'stack [0/fp32/1,4,17,16/0,16,64,1/0', 'stack [0/fp32/4,1,17,16/16,0,64,1/0', SHAPES),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu 0/int16/1,32,256', 'with a dtype that no kernel knows'),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu true/fp32/1,32,256', 'is no argument'),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu 9/fp32/0', 'reaches beyond its operands'),
          ('gpt_toy', 'gelu 0/fp32/1,32,256', 'gelu - 0/fp32/1,32,256', 'has not the arguments of gelu'),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 - [0;1] [1;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 - [1;1] [9;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 - [1;1] [1;1] [1;0]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 - [1;1;1] [1;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 - [1;-] [1;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,3,3 1/fp32/432 [1;1] [1;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '8,3,3,3 - [1;1] [1;1] [1;1]', SHAPES),
          ('convnet', '16,3,3,3 - [1;1] [1;1] [1;1]', '16,3,1,9 - [1;1] [1;1] [1;1]', SHAPES),
          ('convnet', '[0;0] 1 > 2/fp32/1,16,32,32', '[0;0] 3 > 2/fp32/1,16,32,32', SHAPES),
          ('convnet', '[0;0] 1 > 2/fp32/1,16,32,32', '[0;0] 0 > 2/fp32/1,16,32,32', SHAPES),
          ('convnet', '[0;0] 1 > 2/fp32/1,16,32,32', '[0;0] 1 > 2/fp32/1,16,32,16', SHAPES),
          ('convnet', 'false [0;0] 1 > 2/fp32/1,16,32,32', 'true [0;0] 1 > 2/fp32/1,16,32,32', SHAPES),
          ('autoencoder', 'true [1;1] 1 > ', 'false [1;1] 1 > ', SHAPES),
          ('autoencoder', '12,8,3,3 2/fp32/8 [2;2] [1;1]', '12,8,3,3 2/fp32/8 [2;2] [0;1]', SHAPES),
          ('autoencoder', '12,8,3,3 2/fp32/8 [2;2]', '12,8,3,3 2/fp32/4 [2;2]', SHAPES),
          ('autoencoder', '1/fp32/8,3,2,3 - [1;2]', '1/fp32/6,4,2,3 - [1;2]', SHAPES),
          ('convnet', '[false;true;false] > - 3/fp32/16,3,3,3 -', '[false;true;false] > - 3/fp32/16,27 -', SHAPES),
          ('convnet', '[false;true;false] > - 3/fp32/16,3,3,3 -', '[false;true;false] > 1/fp32/1,3,32,16 - -', SHAPES),
          ('convnet', '[true;true;false] > 3/fp32/1,64,4,4', '[true;true;false] > 3/fp32/1,64,16', SHAPES),
          ('convnet', '1/fp32/16 2/fp32/16 3/fp32/16 4/fp32/16', '1/fp32/8 2/fp32/16 3/fp32/16 4/fp32/16', SHAPES),
          ('convnet', '1/fp32/16 2/fp32/16 3/fp32/16 4/fp32/16', '1/fp32/16 2/fp32/16 3/fp32/16 -', SHAPES),
          ('convnet', '5/fp32/1,16,32,32 6/fp32/16', '5/fp32/1,16,1024 6/fp32/16', SHAPES),
          ('convnet', '5/fp32/16 6/fp32/16 true', '5/fp32/16 6/fp32/8 true', SHAPES),
          ('convnet', '32,32 [2;2] [] [0;0] [1;1] false', '32,32 [2;2] [2;-2] [0;0] [1;1] false', SHAPES),
          ('convnet', '32,32 [2;2] [] [0;0] [1;1] false', '32,32 [9;9] [] [0;0] [1;1] false', SHAPES),
          ('convnet', '3/int64/1,16,16,16', '3/int64/1,16,16,8', SHAPES),
          ('convnet', 'false 2/int64/1,16,16,16', 'false 2/int64/1,16,8,16', SHAPES),
          ('video', '12,3,3,5,4', '12,3,3,5,1', SHAPES),
          ('masked', 'cumsum 0/int64/1,20 1 > 1/int64/1,20', 'cumsum 0/int64/1,20 1 > 1/int64/20,1', SHAPES),
          ('masked', 'index_select 0/int64/1,20 1 1/int64/20', 'index_select 0/int64/1,20 1 1/int64/4,5', SHAPES),
          ('masked', 'false > 2/fp32/1,1,32', 'false > 2/fp32/1,32,1', SHAPES),
          ('masked', '1/fp32/1,4,21,21 true', '1/fp32/1,4,21,20 true', SHAPES),
          ('gpt_toy', 'gelu 0/fp32', 'gelu_of_ours 0/fp32', 'calls gelu_of_ours, for which there is no kernel'),
          ('gpt_toy', 'embedding 0/fp32/96,64', 'embedding 0/fp32/6144', 'has not the arguments of embedding'),
          ('gpt_toy', 'embedding 0/fp32/96,64', '?embedding 0/fp32/96,64', 'calls embedding'))


def edited(tap, foreshard, source):
    """A plan that was changed by hand asks for nothing beyond its operands, and for no kernel that is not there."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys(case[0] for case in EDITED):
            network, plan = os.path.join(source, 'tests', 'oracle', 'traced', name + '.network'), folder + '/toy.plan'
            run([foreshard, 'plan', network, '-n', '1', '--sharding', 'none', '-o', plan], wrong)
            with open(plan, encoding='utf-8') as file:
                text = re.sub(r'(?m)^(c\d+) buffer .*', r'\1 -', file.read())  # whose numbers no file gives here
            for old, new, said in (case[1:] for case in EDITED if case[0] == name):
                with open(plan, 'w', encoding='utf-8') as file:
                    file.write(text.replace(old, new))
                done = subprocess.run([foreshard, 'run', plan], capture_output=True, text=True, check=False)
                if old not in text or done.returncode != 2 or said not in done.stderr:
                    wrong.append('%s: status %d: %s' % (new, done.returncode, done.stderr))
    tap.case('an edited plan is refused', wrong)


MUTATED = 25


def other_number(draw, number):
    return str(draw.choice((0, 1, 2, number + 1, max(0, number - 1), 2 * number, number // 2, 7 * number, 1 << 20, 1 << 33,
                            (1 << 48) - 1, -1)))


def mutated_call(draw, call, calls):
    """One of its numbers another, a word left out, missing or in another's place, or another's name."""
    words, kind = call.split(' '), draw.randrange(6)
    numbers = list(re.finditer(r'(?<![A-Za-z])\d+(?![A-Za-z.])', call[call.index(' '):]))
    if kind < 3 and numbers:
        number, at = draw.choice(numbers), call.index(' ')
        return call[:at + number.start()] + other_number(draw, int(number.group())) + call[at + number.end():]
    at, other = (draw.randrange(2, len(words)) for _ in range(2))
    if kind == 3:
        words[at] = '-'
    elif kind == 4:
        words[at], words[other] = words[other], words[at]
    else:
        words[1] = draw.choice(calls).split(' ')[1]
    return ' '.join(words)


def mutated(tap, foreshard, source):
    """Whatever a call is made to say, the plan ends with an error or trains: by no signal."""
    wrong, seed = [], random.randrange(1 << 30)
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        plan, texts = folder + '/toy.plan', []
        for name in ('convnet', 'autoencoder', 'masked', 'video', 'gpt_toy'):
            network = os.path.join(source, 'tests', 'oracle', 'traced', name + '.network')
            run([foreshard, 'plan', network, '-n', '1', '--sharding', 'none', '-o', plan], wrong)
            with open(plan, encoding='utf-8') as file:
                texts.append(re.sub(r'(?m)^(c\d+) buffer .*', r'\1 -', file.read()))
        for _ in range(MUTATED):
            text = draw.choice(texts)
            calls = re.findall(r'(?m)^c\d+ [^-?].* .*$', text)
            call = draw.choice(calls)
            new = mutated_call(draw, call, calls)
            with open(plan, 'w', encoding='utf-8') as file:
                file.write(text.replace(call + '\n', new + '\n', 1))
            done = subprocess.run([foreshard, 'run', plan, '--steps', '1'], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1, 2) or 'signal' in done.stderr:
                wrong.append('%s: status %d: %s' % (new, done.returncode, done.stderr))
    print('# calls are drawn by %d' % seed)
    tap.case('%d plans with a mutated call end by no signal' % MUTATED, wrong)


def main():
    foreshard, source, tap = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), Tap()
    os.environ['FORESHARD_DATA'] = os.path.join(source, 'models')
    # mpirun waits twice so many seconds before it ends a run that is refused, for other ranks' last words; here there are none.
    os.environ['OMPI_MCA_odls_base_sigkill_timeout'] = '0'
    refuses(tap, foreshard, source)
    edited(tap, foreshard, source)
    mutated(tap, foreshard, source)
    python = python_with_torch()
    if python:
        hold_all(tap, python, foreshard, source)
    else:
        for name in PROGRAMS:
            tap.skip(name + ' trains as PyTorch trains it', 'needs PyTorch 2.13')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
