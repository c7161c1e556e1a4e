/* Enforces the limit on the number of processes, several times a second. The kernel counts those of a
   user together and those of root not at all, so its own limit is no more than a bound for between two
   checks. */

#define _GNU_SOURCE
#include "landlock/landlock.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MS 100

static bool was_exceeded;

static long long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Return the number of the processes that this one may signal, which are those of the sandbox. */
static long long count_processes(void) {
    struct names names;
    long long count = 0;
    int proc = open_proc("", DIRECTORY);
    if (proc < 0 || list_names(proc, &names)) return 0;
    for (size_t i = 0; i < names.count; i++)
        if (isdigit((unsigned char)*names.name[i]) && !kill(atoi(names.name[i]), 0)) count++;
    free_names(&names);
    close(proc);
    return count - 1;  /* itself */
}

/* Kill everything in the sandbox if there are too many processes. */
void check_processes(void) {
    static long long next_check;
    if (milliseconds() < next_check) return;
    if (count_processes() > json_number(json_get(sandbox.spec, "limits"), "processes")) {
        kill(-1, SIGKILL);
        was_exceeded = true;
    }
    next_check = milliseconds() + INTERVAL_MS;
}

/* Return the limit that was exceeded since the last call: "" or "background". */
const char *take_process_limit(void) {
    const char *limit = was_exceeded ? "background" : "";
    was_exceeded = false;
    return limit;
}
