/* The state of the supervisor, which is one process with one sandbox. */

#include "supervisor.h"

struct supervisor sandbox;
char *process_title;
