"""tests/gpu/matrix.py - predicted against measured: one rank, several ranks on one card, rehearsed ranks, PyTorch.

Each case is planned, predicted on the cluster file of this session, played, and compared by `foreshard compare`,
whose verdict says of allocated, active and reserved bytes at how many instructions they are equal.
"""
import json
import os
import re

import parts

# What `dry` plays instead: the same options, on a toy.
TOY, TRACED_TOY = 'gpt-toy', 'gpt_toy-bf16.network'
# (name, network, seq of a network of our own or 0, options): one rank, as record_training.py's
ONE_RANK = [
    ('gpt2-xl', 'gpt2-xl', '-n 1 --sharding none --model-dtype bf16 --micro-batch 4 --kernels fused '
     '--optimizer-kernel fused'),
    ('llama3-8b, 8 blocks', 'llama3-8b-8.ini', '-n 1 --sharding none --model-dtype bf16 --seq 4096 --kernels fused '
     '--optimizer-kernel fused'),
    ('gpt2-xl, eager', 'gpt2-xl', '-n 1 --sharding none --model-dtype bf16 --micro-batch 4'),
    ('gpt2-xl, FSDP2', 'gpt2-xl', '-n 1 --param-dtype bf16 --reduce-dtype fp32 --micro-batch 4'),
    ('gpt2-xl, FSDP2, checkpointed', 'gpt2-xl', '-n 1 --param-dtype bf16 --reduce-dtype fp32 --micro-batch 8 '
     '--checkpointing full'),
    ('llama3-8b, 8 blocks, FSDP1', 'llama3-8b-8.ini', '-n 1 --flavour fsdp1 --param-dtype bf16 --seq 2048 '
     '--micro-batch 2'),
    ('gpt2-xl, offloaded activations', 'gpt2-xl', '-n 1 --sharding none --model-dtype bf16 --micro-batch 4 '
     '--checkpointing full --offload activations'),
    ('qwen3-30b-a3b, 4 blocks', 'qwen3-30b-a3b-4.ini', '-n 1 --sharding none --model-dtype bf16 --seq 4096'),
]
# Traced like any module: run op by op, by kernels for tensors of any strides. Behind it stands the same network as a
# family, so that the two steps can be held against each other.
FOR_BOTH = '-n 1 --param-dtype bf16 --reduce-dtype fp32 --micro-batch 8'
TRACED = [('gpt2, traced, FSDP2', 'gpt2-bf16.network', FOR_BOTH), ('gpt2, FSDP2', 'gpt2', FOR_BOTH),
          ('gpt2, traced, checkpointed', 'gpt2-bf16.network', FOR_BOTH + ' --checkpointing full')]
# Several ranks on one card, by way of the host's memory: which rank runs when is the driver's choice, so only memory is
# compared; and NCCL, whose hops may each wait until the other process has its turn, has a part of its own.
SHARED_CARD = [(ranks, name, 'gpt2' if ranks == 2 else TOY, options) for ranks in (2, 4) for name, options in (
    ('FSDP2', '--param-dtype bf16 --reduce-dtype fp32'), ('FSDP1', '--flavour fsdp1 --param-dtype bf16'),
    ('DDP', '--sharding none'), ('ZeRO-1', '--sharding optimizer-only'), ('grad-op', '--sharding grad-op'),
    ('hybrid', '--sharding hybrid --replicate 2')) if name != 'hybrid' or ranks == 4] + [
        (2, 'experts', 'moe-toy', '--param-dtype bf16'), (2, 'half of each sequence', 'llama-toy', '--context 2 '
         '--param-dtype bf16'), (4, 'two to a layer', 'llama-toy', '--tensor 2 --micro-batch 2')]
# (name, network, seconds that both runs take (README.md, "Time"), options)
REHEARSED = [
    ('T5-11B of 512', 't5-11b', 16, '-n 512 --flavour fsdp1 --param-dtype bf16 --checkpointing full --micro-batch 8'),
    ('GPT-175B of 512', 'gpt-175b', 42, '-n 512 --flavour fsdp1 --param-dtype bf16 --checkpointing full'),
    ('Llama 3 8B, eight to a layer, of 512', 'llama3-8b', 12, '-n 512 --tensor 8 --param-dtype bf16 --reduce-dtype fp32 '
     '--checkpointing full'),
]


def network(session, name, seq=0):
    """A network by name; those with .ini are cut from another here, to fewer layers, those with .network were traced; seq:
    with so many positions."""
    match = re.fullmatch(r'(.*)-(\d+)\.ini', name)
    if name.endswith('.network'):
        return os.path.join(session.machine.root, 'tests', 'oracle', 'traced', TRACED_TOY if session.dry else name)
    if session.dry:
        return TOY
    if not match and not seq:
        return name
    with open(os.path.join(session.machine.data, 'networks', (match.group(1) if match else name) + '.ini'),
              encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'(?m)^layers *=.*$', 'layers = ' + match.group(2), text) if match else text
    text = re.sub(r'(?m)^seq *=.*$', 'seq = %d' % seq, text) if seq else text
    path = session.path('work', ('%d-' % seq if seq else '') + name.removesuffix('.ini') + '.ini')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def cluster(session):
    """What the predictions are made with."""
    return session.cluster or ('this-machine' if session.dry else session.machine.cluster)


def far_cluster(session):
    """This GPU, 512 of them: its own numbers, and the network of models/clusters/dgx-h100.ini."""
    def sections(name):
        if os.sep in name:
            with open(name, encoding='utf-8') as file:
                text = file.read()
        else:
            text = session.call(session.machine.programs['foreshard'], 'list', name, limit=60).output
        return {part.split(']', 1)[0]: part for part in re.split(r'(?m)^\[', text)[1:]}
    own, network_of = sections(cluster(session)), sections('dgx-h100')
    for name in ('topology', 'intra_node', 'inter_node', 'collectives'):
        own[name] = network_of[name]
    own['topology'] = 'topology]\nnodes = 64\ngpus_per_node = 8\n\n'
    path = session.path('work', 'sixty-four-nodes.ini')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(''.join('[' + text for text in own.values()))
    return path


def shorter(options):
    """For a toy on the host: without what needs a large network or takes long."""
    return re.sub(r'--(seq|micro-batch|kernels|offload) \S+', '', options).replace('-n 512', '-n 8')


def planned(session, name, network_name, options, seq=0):
    words = (shorter(options) if session.dry else options).split()
    plan = session.path('work', re.sub(r'\W+', '-', name.lower()) + '.plan')
    done = session.call(session.machine.programs['foreshard'], 'plan', network(session, network_name, seq), *words,
                        '-o', plan, limit=60)
    return plan if done.rc == 0 else None


def traces(session, plan):
    base = os.path.basename(plan)[:-len('.plan')]
    return (session.path('traces', base + '.' + side + '.trace') for side in ('predicted', 'measured'))


def last_object(output):
    """The JSON object that a program printed, whatever its libraries say before and after it; {} when there is none."""
    start = output.find('\n{') + 1 if not output.startswith('{') else 0
    try:
        answer, _ = json.JSONDecoder().raw_decode(output, start)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def has_marks(plan):
    """Whether blocks are used by other lanes: when they are free again is then a matter of time."""
    with open(plan, encoding='utf-8') as lines:
        return any(line.startswith('mark ') for line in lines)


def is_equal(verdict, what):
    return what + ' equal at all' in verdict


def compared(session, name, plan, predicted_trace, measured_trace, step_ms):
    """Memory as predicted, (b) of the goals: all of it where the plan has no marks, else what is allocated. step_ms: of a
    run without events around ops, which the predicted step is held against; None where times mean nothing."""
    done = session.call(session.machine.programs['foreshard'], 'compare', predicted_trace, measured_trace, '--json',
                        limit=60)
    if done.is_cut:
        return not_through(session, name)
    answer = last_object(done.output)
    verdict = answer.get('verdict', done.tail())
    memory = verdict.split('; step time')[0].replace(' instructions', '')
    rows = {(row['group'], row['name']): row for row in answer.get('rows', [])}
    step, peak = rows.get(('step', 'step')), rows.get(('peak', 'allocated'))
    if step and step_ms:
        error = step['first'] / 1e6 / step_ms - 1
        if not session.dry:
            session.figure('step error', abs(error))
        memory = 'step %.2f ms, measured %.2f (%+.1f %%; %.2f with events around ops); %s' % (
            step['first'] / 1e6, step_ms, error * 100, step['second'] / 1e6, memory)
    if peak:
        session.figure('peak, ' + name, (peak['first'], peak['second']))
        memory += '; peak %.3f GB' % (peak['second'] / 1e9)
    marks = has_marks(plan)
    equal = [is_equal(verdict, what) for what in (('allocated',) if marks else ('allocated', 'active', 'reserved'))]
    session.figure('memory with marks' if marks else 'memory', (name, all(equal)))
    session.row(name, 'FAIL' if not answer else 'ok' if all(equal) else 'MISS', memory)


def replayed(session, name, plan, measured_trace):
    """(a) of the goals: with the allocator's own answers all memory is equal at every instruction."""
    done = session.call(session.machine.programs['foreshard'], 'replay', plan, measured_trace, limit=60)
    if done.is_cut:
        return
    session.figure('replayed', (name, done.rc == 0))
    if done.rc:
        session.row('replayed, ' + name, 'MISS' if done.rc == 1 else 'FAIL', done.tail())


# What CUDA takes beside what we ask for, once it loads kernels; assumed, until a GPU has said it.
DRIVER_BYTES = 256 * 2**20


def header_of(trace):
    """The keys of a trace's header, as text."""
    keys = {}
    with open(trace, encoding='utf-8') as lines:
        for line in lines:
            key, _, value = line.rstrip('\n').partition(' ')
            if key == 'tables':
                break
            keys[key] = value
    return keys


def counted_by_driver(session, name, measured_trace):
    """What the driver counts more at the end than at the opening, against what we hold by then; clocks and power."""
    head = header_of(measured_trace)
    keys = ('gpu_used_bytes_end', 'gpu_used_bytes_open', 'reserved_bytes_end', 'kernel_scratch_bytes',
            'kernel_scratch_bytes_open')
    if not all(key in head for key in keys):
        return
    end, opened, reserved, scratch, scratch_then = (int(head[key]) for key in keys)
    held, off = reserved + scratch - scratch_then, end - opened - reserved - scratch + scratch_then
    good = abs(off) <= 0.01 * held + DRIVER_BYTES
    session.figure('driver', (name, good))
    session.row('driver, ' + name, 'ok' if good else 'MISS',
                'counts %.3f GB more than at the opening, %.3f GB are held (%+.1f MB); %s MHz, %s W on the average, an '
                'event costs %s ns; attention by %s' % (
                    (end - opened) / 1e9, held / 1e9, off / 1e6, head.get('gpu_busy_clock_mhz_mean', '?'),
                    head.get('gpu_busy_power_mw_mean', '?000')[:-3], head.get('op_times_record_ns'),
                    head.get('gpu_attention', 'products and softmax')))
    given = int(head.get('kernel_scratch_given_bytes', 0))
    if given:
        session.row('room, ' + name, '', 'the allocator gave %.3f GB back for what kernels take beside it' % (given / 1e9))
    if 'gpu_attention_refused' in head:
        session.row('attention, ' + name, 'MISS', 'without tensor cores: ' + head['gpu_attention_refused'])


def step_time(session, *command):
    """The step of the same run without events around ops, in ms; None when it fails."""
    quiet = [] if session.dry else ['--no-op-times']  # the host has none
    return last_object(session.call(*command, *quiet, '--json', limit=90).output).get('step_ms')


def failed(session, name, done):
    if done.is_cut:
        not_through(session, name)
    else:
        session.row(name, 'FAIL', 'status %d: %s' % (done.rc, done.tail()))


def play(session, name, network_name, options, ranks=1, times=True, steps=6):
    """Plans, predicts, runs and compares one case."""
    plan = planned(session, name, network_name, options)
    if not plan:
        session.row(name, 'FAIL', 'it cannot be planned; the log says why')
        return None
    predicted_trace, measured_trace = traces(session, plan)
    device = 'host' if session.dry else 'cuda'
    predicted = session.call(session.machine.programs['foreshard'], 'predict', plan, '--cluster', cluster(session),
                             '--steps', steps, '--trace', predicted_trace, limit=60)
    measured = session.call(session.machine.programs['foreshard-exec'], plan, '--device', device, '--local-ranks', ranks,
                            '--comm', 'auto' if ranks == 1 or session.dry else 'local', '--steps', steps, '--watchdog', 45,
                            '--trace', measured_trace, '--json', limit=90)
    if predicted.rc or measured.rc:
        failed(session, name, predicted if predicted.rc else measured)
        return None
    compared(session, name, plan, predicted_trace, measured_trace, times and step_time(
        session, session.machine.programs['foreshard-exec'], plan, '--device', device, '--local-ranks', ranks, '--steps',
        steps, '--watchdog', 45))
    replayed(session, name, plan, measured_trace)
    if ranks == 1:
        counted_by_driver(session, name, measured_trace)
    else:
        session.figure('ranks', header_of(measured_trace).get('gpu_comm', 'the host'))
    return last_object(measured.output)


def not_through(session, name):
    """Of a command that was ended with its part, which says nothing of it."""
    session.row(name, 'skip', 'not through in the time that was left')


def has_time(session, name, seconds):
    if session.remaining() >= (1 if session.dry else seconds):
        return True
    session.row(name, 'skip', 'no time is left')
    return False


def side_by_side(session):
    if 'foreshard-exec' not in session.machine.programs:
        session.row('side by side', 'skip', 'these programs have no foreshard-exec')
        return
    session.row('predicted with', '', os.path.basename(cluster(session)))
    for name, network_name, options in ONE_RANK[:1] if session.dry else ONE_RANK[:2]:
        if has_time(session, name, 10):
            session.attempt(name, play, session, name, network_name, options)
    for name, network_name, seconds, options in REHEARSED[:1] if session.dry else REHEARSED:
        if has_time(session, name, seconds):
            session.attempt(name, rehearse, session, name, network_name, options)
    for name, network_name, options in TRACED[:1] if session.dry else TRACED + ONE_RANK[2:]:
        if has_time(session, name, 10):
            session.attempt(name, play, session, name, network_name, options)
    for ranks, way, network_name, options in SHARED_CARD[:1] if session.dry else SHARED_CARD:
        name = '%d ranks on one card, %s' % (ranks, way)
        if has_time(session, name, 5):
            session.attempt(name, play, session, name, network_name, '-n %d %s' % (ranks, options), ranks, False)


def rehearse(session, name, network_name, options):
    foreshard = session.machine.programs['foreshard']
    if session.call(foreshard, 'rehearse', '--help', limit=20).rc:
        session.row(name, 'skip', 'this foreshard has no command rehearse')
        return
    plan = planned(session, name, network_name, options)
    if not plan:
        session.row(name, 'FAIL', 'it cannot be planned; the log says why')
        return
    predicted_trace, measured_trace = traces(session, plan)
    where = far_cluster(session)
    steps = ['--steps', 3]  # a step of GPT-175B takes seconds
    predicted = session.call(foreshard, 'predict', plan, '--cluster', where, *steps, '--trace', predicted_trace,
                             limit=60)
    measured = session.call(foreshard, 'rehearse', plan, '--rank', 0, '--cluster', where, '--device',
                            'host' if session.dry else 'cuda', *steps, '--trace', measured_trace, limit=120)
    if predicted.rc or measured.rc:
        failed(session, name, predicted if predicted.rc else measured)
        return
    compared(session, name, plan, predicted_trace, measured_trace, step_time(
        session, foreshard, 'rehearse', plan, '--rank', 0, '--cluster', where, '--device',
        'host' if session.dry else 'cuda', *steps))
    replayed(session, name, plan, measured_trace)
    counted_by_driver(session, name, measured_trace)


# ---- each way to communicate, by NCCL ------------------------------------------------------------------

# (name, network, options): between them two ranks ask NCCL for each collective that plans have (test-run.py looks), but
# for the broadcast of what DDP and traced networks have in buffers.
NCCL = [('gathers, scattered sums', TOY, '--clip 1'), ('sums', TOY, '--sharding none'),
        ('all to all', 'moe-toy', '--expert 2 --network-key routing=in-turn --micro-batch 3'),
        ('a ring', 'llama-toy', '--context 2 --param-dtype bf16'), ('shared layers', 'llama-toy', '--tensor 2 --micro-batch 2'),
        ('stages', 'llama-toy', '--pipeline 2 --accumulate 3 --micro-batch 1'),
        ('stages by turns', 'llama-toy', '--network-key layers=6 --pipeline 2 --pipeline-stages 2 --pipeline-schedule '
         'interleaved-1f1b --pipeline-split even --accumulate 2 --micro-batch 1'),
        ('shared layers, pulled in parts', 'llama-toy', '--tensor 2 --kernels compiled --param-dtype bf16 --async-tensor yes '
         '--micro-batch 3')]
# Of losses, relative to the host's: as tests/exec/gpu-runs.h has it for fp32, and for bf16.
NCCL_BOUND, NCCL_BOUND_HALVES = 2e-5, 2.0**-6


def by_nccl(session):
    """Two ranks on one card by NCCL, which is what binds those that have a GPU each, whatever binds others in this visit. If
    it fails or hangs at the first, it is asked for no more."""
    if 'foreshard-exec' not in session.machine.programs:
        session.row('ranks', 'skip', 'these programs have no foreshard-exec')
        return
    takes_two = True
    for name, network_name, options in NCCL[:1] if session.dry else NCCL:
        is_first = name == NCCL[0][0]
        if not takes_two:
            session.row(name, 'skip', 'NCCL does not take two ranks on one card here')
        elif has_time(session, name, 8):
            played = session.attempt(name, by_nccl_alike, session, name, network_name, options, is_first)
            takes_two = played or not is_first


def two_ranks(session, plan, *options, environment=None):
    """What three steps came to, {} where they failed, and how the command ended."""
    done = session.call(session.machine.programs['foreshard-exec'], plan, '--local-ranks', 2, '--steps', 3, '--watchdog', 15,
                        '--json', *options, limit=60, environment=environment)
    return last_object(done.output) if done.rc == 0 else {}, done


def by_nccl_alike(session, name, network_name, options, is_first):
    """Whether NCCL could play it."""
    plan = planned(session, name, network_name, '-n 2 ' + options)
    on_host, done = two_ranks(session, plan) if plan else ({}, None)
    if not on_host:
        if done and done.is_cut:
            not_through(session, name)
        else:
            session.row(name, 'FAIL', 'the host cannot play it; the log says why')
        return True
    on_gpu, done = two_ranks(session, plan, *([] if session.dry else ['--device', 'cuda', '--comm', 'nccl']), environment={
        'NCCL_DEBUG': 'INFO', 'NCCL_DEBUG_FILE': session.path('logs', 'nccl-%s.%%p.log' % re.sub(r'\W+', '-', name))})
    if not on_gpu and is_first and not done.is_cut:
        session.row(name, 'MISS', 'NCCL does not take two ranks on one card here: ' + done.tail())
    elif not on_gpu:
        failed(session, name, done)
    else:
        bound = NCCL_BOUND_HALVES if 'bf16' in options else NCCL_BOUND
        worst = max(abs(a / b - 1) for a, b in zip(on_gpu['losses'], on_host['losses'], strict=True))
        session.row(name, 'ok' if worst <= bound else 'MISS', 'losses are the host\'s within %.2g (bound %.2g); a step in %.0f '
                    'ms' % (worst, bound, on_gpu['step_ms']))
    return bool(on_gpu)


# ---- training, against PyTorch -----------------------------------------------------------------------

# Name and sequence as record_training.py has them, tokens a step alike.
TRAINED = [('gpt2-xl', 'gpt2-xl', 2048, 8), ('llama3-8b, 8 blocks', 'llama3-8b-8.ini', 2048, 8),
           ('gpt2-xl', 'gpt2-xl', 8192, 2), ('llama3-8b, 8 blocks', 'llama3-8b-8.ini', 8192, 2),
           ('gpt2-xl', 'gpt2-xl', 4096, 4), ('llama3-8b, 8 blocks', 'llama3-8b-8.ini', 4096, 4)]


def model_flops(session, plan):
    """Of a step, as foreshard counts them: products and attention, nothing that is done again."""
    answer = last_object(session.call(session.machine.programs['foreshard'], 'predict', plan, '--cluster',
                                      cluster(session), '--steps', 3, '--json', limit=30).output)
    return answer.get('tflops_per_gpu', 0) * 1e12 * answer.get('step_ms', 0) / 1e3


ROOFS = r'(?m)^copy of 256 MiB: (\S+) GB/s; product of 8192 cubed, bf16: (\S+) TFLOP/s'


def roofs(session):
    """(FLOP/s of a bf16 product of 8192 cubed, bytes/s of a copy), as the benchmark measures them; once a session."""
    if 'roofs' not in session.figures and not session.dry and session.machine.benches:
        done = session.call(session.machine.benches[0], 'the roofs alone', limit=60)
        found = re.search(ROOFS, done.output)
        if found:
            session.figures['roofs'] = (float(found.group(2)) * 1e12, float(found.group(1)) * 1e9)
            session.row('roofs', '', found.group(0))
    return session.figures.get('roofs', (None, None))


def utilization(session, name, plan, step_ms):
    flops, (peak, _) = model_flops(session, plan), roofs(session)
    if flops and step_ms:
        rate = flops / step_ms * 1e3
        if peak:
            session.figure('utilization', (name, rate / peak))
        session.row('utilization, ' + name, '' if not peak else 'ok' if rate / peak >= 0.55 else 'MISS', '%.0f TFLOP/s%s' % (
            rate / 1e12, ', %.1f %% of a product of 8192 cubed; 55 %% are wanted' % (rate / peak * 100) if peak else ''))


TRAINING = '-n 1 --sharding none --model-dtype bf16 --kernels fused --optimizer-kernel fused --micro-batch %d'


def trained(session, case, network_name, seq, batch):
    """Tokens per second of one network, or None."""
    plan = planned(session, case + '-trained', network_name, TRAINING % batch, seq)
    if not plan:
        session.row(case, 'FAIL', 'it cannot be planned; the log says why')
        return None
    done = session.call(session.machine.programs['foreshard-exec'], plan, '--device', 'host' if session.dry else 'cuda',
                        '--local-ranks', 1, '--steps', 8, '--json', *([] if session.dry else ['--no-op-times']), limit=60)
    answer = last_object(done.output)
    if done.is_cut:
        not_through(session, case)
    elif 'tokens_per_s' in answer:
        utilization(session, case, plan, answer['step_ms'])
        return answer['tokens_per_s']
    else:
        session.row(case, 'FAIL', 'status %d: %s' % (done.rc, done.tail()))
    return None


def ours(session, share):
    """Tokens per second by network and sequence, in that share of the part's time: the rest is PyTorch's."""
    rates = {}
    kept = session.remaining() * (1 - share)
    for name, network_name, seq, batch in TRAINED[:1] if session.dry else TRAINED:
        case = '%s, %d' % (name, seq)
        if not has_time(session, case, kept + 8):
            continue
        rate = session.attempt(case, trained, session, case, network_name, seq, batch)
        if rate:
            rates[name, seq] = rate
    return rates


def training(session):
    """Ours and PyTorch's in one session; the best of PyTorch's ways that there was time for is what is held against."""
    can = 'foreshard-exec' in session.machine.programs and not session.machine.refused
    rates = ours(session, 0.4) if can else {}
    parts.timed_recorder('training')(session)
    best = {}
    for row in parts.rows_of(session.path('records', 'training.jsonl')):
        if 'train' in row:
            session.row('PyTorch %s, %d, %s' % (row['train'], row['seq'], row['how']), '',
                        '%.0f tokens/s, %.0f TFLOP/s' % (row['tokens_per_s'], row['tflops']))
            key = row['train'], row['seq']
            best[key] = max(best.get(key, (0, '')), (row['tokens_per_s'], row['how']))
    for (name, seq), rate in rates.items():
        rival, how = best.get((name, seq), (None, ''))
        share = rate / rival if rival else None
        verdict = '' if share is None else 'ok' if share >= 1 else 'MISS'
        if share and not session.dry:
            session.figure('tokens', ('%s, %d' % (name, seq), share))
        session.row('ours %s, %d' % (name, seq), verdict, '%.0f tokens/s%s' % (
            rate, ', %.2f of the best of PyTorch (%s)' % (share, how) if share else ''))
