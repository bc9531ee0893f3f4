/* tests/style/links-mpi.c - a program that links MPI, for tests/style/test-links.py to catch. */
#include <mpi.h>

int main(void) {
    int version = 0;
    int subversion = 0;
    return MPI_Get_version(&version, &subversion) == MPI_SUCCESS ? 0 : 1;
}
