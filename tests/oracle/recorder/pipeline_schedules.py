"""What each place of a pipeline does by schedules of several stages a rank, in PyTorch's own words, a line each: what plans
are held to (tests/plan/schedules.txt). No stage is made."""

from torch.distributed.pipelining import schedules

# places, stages of each, microbatches
SETTINGS = {"interleaved-1f1b": [(2, 2, 4), (4, 2, 8), (4, 2, 3), (3, 5, 9), (4, 2, 10)],
            "looped-bfs": [(2, 2, 3), (3, 5, 4), (4, 2, 8)]}
KINDS = {"interleaved-1f1b": schedules.ScheduleInterleaved1F1B, "looped-bfs": schedules.ScheduleLoopedBFS}


def programs(kind, places, stages, microbatches):
    schedule = kind.__new__(kind)
    schedule.pp_group_size, schedule._n_microbatches = places, microbatches
    schedule.n_local_stages, schedule._stages = stages, [None] * stages
    schedule.number_of_rounds = max(1, microbatches // places)
    schedule.microbatches_per_round = microbatches // schedule.number_of_rounds
    compute = {place: schedule._calculate_single_rank_operations(place) for place in range(places)}
    with_gathers = {place: schedules._add_reduce_grad(schedules._add_unshard_reshard(actions), microbatches)
                    for place, actions in compute.items()}
    return schedules._add_send_recv(with_gathers, lambda stage: stage % places, places * stages)


if __name__ == "__main__":
    for name, settings in SETTINGS.items():
        for setting in settings:
            for place, actions in sorted(programs(KINDS[name], *setting).items()):
                print(name, *setting, place, *actions)
