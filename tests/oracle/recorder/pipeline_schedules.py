"""What each place of a pipeline does by ScheduleInterleaved1F1B, in PyTorch's own words, a line each: what plans are held to
(tests/plan/schedules.txt). No stage is made."""

from torch.distributed.pipelining import schedules

SETTINGS = [(2, 2, 4), (4, 2, 8), (4, 2, 3), (3, 5, 9), (4, 2, 10)]  # places, stages of each, microbatches


class Schedule(schedules.ScheduleInterleaved1F1B):
    def __init__(self, places, stages, microbatches):
        self.pp_group_size, self.n_local_stages, self._n_microbatches = places, stages, microbatches
        self.number_of_rounds = max(1, microbatches // places)
        self.microbatches_per_round = microbatches // self.number_of_rounds

    def programs(self):
        compute = {place: self._calculate_single_rank_operations(place) for place in range(self.pp_group_size)}
        with_gathers = {place: schedules._add_reduce_grad(schedules._add_unshard_reshard(actions), self._n_microbatches)
                        for place, actions in compute.items()}
        return schedules._add_send_recv(with_gathers, lambda stage: stage % self.pp_group_size,
                                        self.pp_group_size * self.n_local_stages)


if __name__ == "__main__":
    for setting in SETTINGS:
        for place, actions in sorted(Schedule(*setting).programs().items()):
            print(*setting, place, *actions)
