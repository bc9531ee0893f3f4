/* cli/published/train/link.h - how fast a published run's network is, by its source's words for it.
 *
 * Threads: any. Cost: a few regular expressions a clause.
 */
#pragma once

/* 1e9 bytes a second of network for each GPU, by the words of `interconnect` ("400 Gb/s per GPU",
 * "4 x 100 Gb/s per node"); 0 where they do not say it. */
double cli_train_link_gb_per_s(const char *interconnect, double gpus_per_node);
