/* cli/host/machine.h - what the system says of the machine at hand.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* Its processor's name. Transfer full. */
char *cli_machine_processor(void);
/* Memory that could be had now without swapping; 0: the system does not say. */
uint64_t cli_machine_free_bytes(void);
