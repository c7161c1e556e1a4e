/* Enforces the limit on the number of threads of all processes, several times a second. The kernel counts those of a
   user together and those of root not at all, so its own limit is no more than a bound for between two
   checks. */

#define _GNU_SOURCE
#include "landlock/landlock.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_MS 100
#define THREADS_FIELD 20  /* of /proc/PID/stat */

static bool was_exceeded;

/* Return the number of threads of a process, or 0 if it has ended. */
static long long count_threads(int proc, const char *pid) {
    char path[64], stat[1024];
    snprintf(path, sizeof path, "%s/stat", pid);
    if (read_text(proc, path, stat, sizeof stat) <= 0) return 0;
    const char *field = strrchr(stat, ')');  /* ends the second field, the name, which may hold spaces */
    for (int number = 2; field && number < THREADS_FIELD; number++) field = strchr(field + 1, ' ');
    return field ? strtoll(field, NULL, 10) : 0;
}

/* Return the number of threads of the processes that this one may signal, which are those of the
   sandbox. */
static long long count_processes(void) {
    struct names names;
    long long count = 0;
    int proc = open_proc("", DIRECTORY);
    if (proc < 0 || list_names(proc, &names)) return 0;
    for (size_t i = 0; i < names.count; i++)
        if (isdigit((unsigned char)*names.name[i]) && !kill(atoi(names.name[i]), 0))
            count += count_threads(proc, names.name[i]);
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
