/* plan/graph/emit.h - the functions by which a family makes the graph of its network.
 *
 * First it declares modules and their parameters, in the order in which PyTorch registers them.
 * Then it walks forward as Python runs it: enters a module, calls ops, leaves it, and says for how
 * long a local variable holds a value.
 */
#pragma once

#include "plan/graph/graph.h"
#include "plan/op/names.h"

/* ---- declaring: what there is before the walk ------------------------------------------------ */

PlanGraph *plan_graph_new(PlanDtype dtype);
/* parent PLAN_NONE makes the root. */
uint32_t plan_graph_module(PlanGraph *graph, uint32_t parent, const char *local_name,
                           const char *class_name, bool is_block);
uint32_t plan_graph_parameter(PlanGraph *graph, uint32_t module, const char *local_name,
                              unsigned n_dims, const int64_t *dims, PlanInit init,
                              double init_value); /* a value */
/* Says how the parameter is split among ranks; the dims it was declared with are one rank's. */
void plan_graph_split_parameter(PlanGraph *graph, uint32_t value, PlanSplit split);
/* Each rank of the tensor axis has all of it, and all tokens pass through it. */
void plan_graph_sees_all(PlanGraph *graph, uint32_t value);
/* Each rank of the tensor axis has all of it, a bias, and adds an N-th of it to its term of a sum
 * of all tokens. */
void plan_graph_add_in_parts(PlanGraph *graph, uint32_t value);
/* The parameter has this dtype, not the network's. */
void plan_graph_give_dtype(PlanGraph *graph, uint32_t value, PlanDtype dtype);
/* The parameter, a matrix, is stored in 4 bits, in a tensor of dtype graph->trained.stored. */
void plan_graph_pack(PlanGraph *graph, uint32_t value);
/* The parameter is not trained, whatever the strategy says. */
void plan_graph_freeze(PlanGraph *graph, uint32_t value);
/* Another module holds the same parameter (tied weights): what freezes one freezes the other. */
void plan_graph_tie(PlanGraph *graph, uint32_t module, uint32_t value);
uint32_t plan_graph_input(PlanGraph *graph, PlanDtype dtype, uint64_t elements, uint64_t bound);
/* The input of a pipeline stage: it arrives from the stage before, and its gradient is sent back
 * there. */
uint32_t plan_graph_arriving(PlanGraph *graph, uint64_t elements);
/* A registered buffer that takes memory and that no op reads. It is made after all parameters, or
 * between them, where it is declared. */
void plan_graph_buffer(PlanGraph *graph, PlanDtype dtype, uint64_t elements);
uint32_t plan_graph_buffer_between(PlanGraph *graph, PlanDtype dtype, uint64_t elements);
/* Adds tables of rotary embedding to the graph's ropes. */
void plan_graph_rope(PlanGraph *graph, uint64_t seq, uint64_t dim, double base);
/* The same as one table of complex numbers. */
void plan_graph_turns(PlanGraph *graph, uint64_t seq, uint64_t dim, double base);
/* Buffers made between the parameters: what rotary tables are made of in each pass; one number,
 * in the dtype that the network is made in. */
uint32_t plan_graph_rope_frequencies(PlanGraph *graph, uint64_t dim, double base);
uint32_t plan_graph_number(PlanGraph *graph, double number);

/* ---- walking: modules, and functions that are none ------------------------------------------- */

void plan_graph_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n);
/* The same if the caller keeps no reference to the arguments: each is freed after its last reader,
 * not when the module has returned. */
void plan_graph_enter_with(PlanGraph *graph, uint32_t module, const uint32_t *arguments,
                           unsigned n);
void plan_graph_leave(PlanGraph *graph, const uint32_t *results, unsigned n);
/* The module that was just left has a hook that computes before those of a unit: what is walked
 * from here on until the module is closed, with what the hook gives. */
void plan_graph_hook_computes(PlanGraph *graph);
void plan_graph_close(PlanGraph *graph, uint32_t module, uint32_t result);
/* A plain function: what is walked until it returns counts as that module's, but no hooks run. */
void plan_graph_call(PlanGraph *graph, uint32_t module);
void plan_graph_return(PlanGraph *graph);
/* What is walked from here on runs after backward and has no gradients: metrics. It counts as the
 * module's, whose hooks do not run. */
void plan_graph_after_backward(PlanGraph *graph, uint32_t module);
/* Ends the region of autocast, if there is one: the copies of parameters that it cached are freed.
 * module: the one that is left last. */
void plan_graph_leave_autocast(PlanGraph *graph, uint32_t module);
/* Walks a traced network, whose modules, parameters, buffers and inputs have been declared. traced
 * is borrowed. */
void plan_graph_traced(PlanGraph *graph, const PlanTraced *traced);
/* Ends the walk: notes the loss, and works out at which step each value is freed. */
void plan_graph_finish(PlanGraph *graph, uint32_t loss);

/* The value itself, or its cast, if a unit has cast it on its way in or out (boundaries.h). */
uint32_t plan_graph_stand_in(const PlanGraph *graph, uint32_t value);

/* ---- ops of one kernel ----------------------------------------------------------------------- */

/* An op of one result, which is returned. Inputs, dims and attributes are as many as ops.def names,
 * in its order; an input may be PLAN_NONE where it is optional. */
uint32_t plan_graph_op(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                       uint64_t elements, const int64_t *dims, const double *attrs);
/* The same with as many results as ops.def names; an optional one may have 0 elements, and then no
 * buffer. Returns the first; the others have the numbers after it. */
uint32_t plan_graph_op_making(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                              const PlanGraphResult *results, const int64_t *dims,
                              const double *attrs);
/* An op in place: its one result is written over value `into`. */
uint32_t plan_graph_op_into(PlanGraph *graph, uint32_t into, PlanOpKind kind,
                            const uint32_t *inputs, const int64_t *dims);
/* y + number product, written over y. Where a compiler can, the op that reads the sum computes it
 * (autograd/addends.h). */
uint32_t plan_graph_add_scaled(PlanGraph *graph, uint32_t y, uint32_t product, double number);
/* x in a dtype: a copy, or x itself if it has that dtype. Autocast caches its copy of a parameter,
 * which is then returned again. */
uint32_t plan_graph_cast(PlanGraph *graph, uint32_t x, PlanDtype dtype);
/* Zero where the mask says so, in place. */
void plan_graph_zero_masked(PlanGraph *graph, uint32_t mask, uint32_t x, uint64_t rows,
                            uint64_t width);

/* ---- views ----------------------------------------------------------------------------------- */

/* Splits x [rows, sum of cols] into n views, of cols[i] columns each. */
void plan_graph_split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views);
/* The same of what linear_parts made; their gradients are joined in rows all the same. */
void plan_graph_parts(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views);
/* A view of so many columns of x [rows, width] from one on. */
uint32_t plan_graph_slice(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t width,
                          uint64_t from, uint64_t cols);
uint32_t plan_graph_rest(PlanGraph *graph, uint32_t x);
uint32_t plan_graph_half(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t half, bool upper);
/* A view of `cols` columns of x from column `from` on; rows of x's base have `total` numbers. Its
 * gradient lies in rows of dy_width numbers, from number dy_from on. */
typedef struct {
    uint64_t rows, cols, from, total, dy_width, dy_from;
} PlanGraphColumns;
uint32_t plan_graph_columns(PlanGraph *graph, uint32_t x, const PlanGraphColumns *columns);
uint32_t plan_graph_heads(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t heads, uint64_t head_dim, PlanGraphHeads mode);
uint32_t plan_graph_repeated(PlanGraph *graph, uint32_t x, uint64_t times);
uint32_t plan_graph_shown(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t times, uint64_t head_dim);
/* A view of x with a node of its own in autograd: the gradients of its readers are summed there
 * first, and only that sum is added to x's gradient. */
uint32_t plan_graph_reshaped(PlanGraph *graph, uint32_t x);
uint32_t plan_graph_detached(PlanGraph *graph, uint32_t x);

/* ---- layers that ranks share ----------------------------------------------------------------- */

/* Tokens [batch, rows, width] of each rank; those of all, [batch, ranks * rows, width]. */
typedef struct {
    uint64_t batch, rows, width;
} PlanGraphTokens;
uint32_t plan_graph_shared_gather(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_scatter(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* For a second reader of a gathered x: x is not gathered again, but in backward this reader's
 * gradient is reduced and scattered by itself. */
uint32_t plan_graph_shared_again(PlanGraph *graph, uint32_t x, uint32_t gathered,
                                 const PlanGraphTokens *tokens);
/* own: this rank's tokens of x, which has the tokens of all ranks. Call taken on that x once
 * before: in backward it makes x's gradient one of all ranks' tokens again. */
uint32_t plan_graph_shared_own(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_taken(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* Without sequence parallel, where each rank has all tokens: x as a layer that ranks share reads
 * it, and the sum of what the ranks' parts of such a layer give. */
uint32_t plan_graph_shared_read(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
uint32_t plan_graph_shared_sum(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens);
/* x [rows, cols] of each rank side by side. */
uint32_t plan_graph_shared_whole(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t cols);
/* Looks up n rows of a table of which this rank has `part` rows of `width` numbers; *ret_mask marks
 * those that other ranks have, whose numbers here are meaningless. */
uint32_t plan_graph_shared_rows(PlanGraph *graph, uint32_t table, uint32_t index, uint64_t n,
                                uint64_t width, uint64_t part, uint32_t *ret_mask);
uint32_t plan_graph_shared_loss(PlanGraph *graph, uint32_t logits, uint32_t targets, uint64_t rows,
                                uint64_t cols);
/* The same in fp32, of logits as they are. */
uint32_t plan_graph_shared_compiled_loss(PlanGraph *graph, uint32_t logits, uint32_t targets,
                                         uint64_t rows, uint64_t cols);

/* ---- linear layers of several kernels -------------------------------------------------------- */

/* The product of x [m, k] and a weight [n, k], both cast to float8. */
uint32_t plan_graph_float8_linear(PlanGraph *graph, uint32_t x, uint32_t weight, uint64_t m,
                                  uint64_t n, uint64_t k);
/* The same of x, weight and bias or PLAN_NONE, with delayed scales. */
uint32_t plan_graph_delayed_linear(PlanGraph *graph, const uint32_t *x_weight_bias, uint64_t m,
                                   uint64_t n, uint64_t k);
/* The product of x [m, k] and a weight [n, k] in 4 bits, with a bias or PLAN_NONE. */
uint32_t plan_graph_four_bit_linear(PlanGraph *graph, const uint32_t *x_weight_bias, uint64_t m,
                                    uint64_t n, uint64_t k);

/* ---- sequences and experts that ranks share, and latent attention ---------------------------- */

/* Attention of this rank's part of each sequence to all of it; its result in rows of tokens. */
uint32_t plan_graph_ring_attention(PlanGraph *graph, const uint32_t *q_k_v,
                                   const PlanGraphRing *ring, double scale);
/* Given how many of this rank's rows go to each expert: how many rows each rank sends here for each
 * of this rank's experts, [ranks, experts of a rank]. */
uint32_t plan_graph_exchange_splits(PlanGraph *graph, uint32_t counts, uint64_t experts);
/* Sends rows to other ranks, and returns the rows that those send here, `elements` in all. What was
 * sent last must be awaited before it is used. */
uint32_t plan_graph_exchange_send(PlanGraph *graph, uint32_t rows, uint64_t elements);
void plan_graph_exchange_await(PlanGraph *graph, uint32_t sent);
/* From the result of exchange_splits: how many rows each of this rank's experts has. *ret_order:
 * the order that sorts the n received rows by expert. */
uint32_t plan_graph_exchange_order(PlanGraph *graph, uint32_t splits, uint64_t experts, uint64_t n,
                                   uint32_t *ret_order);
void plan_graph_latent_split(PlanGraph *graph, uint32_t x, const PlanGraphLatentSplit *split,
                             uint32_t *ret_views);
uint32_t plan_graph_latent_rotate(PlanGraph *graph, uint32_t x, uint32_t turns,
                                  const PlanGraphLatentRotation *turn);
/* x, which a node of autograd holds for as long as the returned value lives. */
uint32_t plan_graph_latent_kept(PlanGraph *graph, uint32_t x);

/* ---- who holds a value, and for how long ----------------------------------------------------- */

/* A local variable of the module being walked holds the value until the module returns. */
void plan_graph_hold(PlanGraph *graph, uint32_t value);
/* The call of the module being walked holds it: until its hooks have run, too. */
void plan_graph_hold_argument(PlanGraph *graph, uint32_t value);
/* The root's forward returns the value, which the last step made: it is held as results are. */
void plan_graph_return_value(PlanGraph *graph, uint32_t value);
/* A local variable of a function that is no module holds the value until now. */
void plan_graph_keep(PlanGraph *graph, uint32_t value);
/* The variable that holds `value` is assigned `next`, which the last op made. A recomputation that
 * stops before that op frees `value` as that variable's. */
void plan_graph_give_name(PlanGraph *graph, uint32_t value, uint32_t next);
/* If a recomputation stops while both are alive, value is freed right after `other`: both are
 * variables of one function. */
void plan_graph_goes_behind(PlanGraph *graph, uint32_t value, uint32_t other);
/* If both are freed in the same step, value is freed after `other`. */
void plan_graph_let_go_after(PlanGraph *graph, uint32_t value, uint32_t other);
/* A call's arguments as they were given, and as they were cast for it: the casts are freed after
 * last_made, in order. */
void plan_graph_let_go_of_casts(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                                unsigned n, uint32_t last_made);
