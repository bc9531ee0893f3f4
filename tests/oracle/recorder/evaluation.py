"""Evaluation between the first training step and the second, as transformers' Trainer and torchtitan's validator run it: model.eval(), and passes of
forward alone under no_grad, whose batches are by themselves. Nothing is kept of a pass, or its logits
until the next one has others."""

import argparse
from dataclasses import replace

import torch

import autocast
import networks
import program_network
import tensor_parallel
import training_loop


def make_batch(shape, options, device):
    """None: there is no evaluation."""
    if not options.eval_batches:
        return None
    own = argparse.Namespace(**vars(options) | {"batch": options.eval_batch or options.batch})
    if own.program:
        return program_network.make_batch(own, device)
    return networks.make_batch(shape, own.batch, device)


def evaluate(model, batch, shape, options, recorder, loop):
    recorder.phase = "evaluation"
    model.eval()
    if options.eval_holds_logits:
        shape, loop = replace(shape, logits_held="next-forward"), training_loop.Loop()
    for _ in range(options.eval_batches):
        with torch.no_grad(), autocast.region(options), tensor_parallel.loss_region(options):
            loss, held = loop.forward(model, batch, shape, options)
        del loss
        del held
    model.train()
    recorder.phase = "between steps"
