"""What counts the kernels, products and fills that the pretended GPU (tests/oracle/pretend-cuda) was given."""

import ctypes


def launch_counter(device):
    """A function that says how many there were: none on the CPU."""
    if device == "cpu":
        return lambda: 0
    count = ctypes.CDLL(None).pretend_launches
    count.restype = ctypes.c_ulonglong
    return count
