/* plan/build/evaluate.h - an evaluation between two steps: passes of forward alone, under
 * model.eval() and torch.no_grad(), of batches of their own. Inside plan/ only.
 *
 * It is a walk of its own (PlanGraph.evaluation) over the same modules and parameters: another
 * number of sequences, and nothing dropped at random. Autograd keeps nothing, so a tensor goes with
 * the last variable that holds it, and no backward comes: a unit that forward leaves whole, as a
 * rule the root, stays whole into the next step. Facts: recordings of PyTorch 2.13.
 */
#pragma once

#include "plan/autograd/run.h"

void plan_evaluate(PlanRun *run);
