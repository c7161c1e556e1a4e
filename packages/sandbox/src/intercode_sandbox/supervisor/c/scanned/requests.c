/* Requests that only supervisors that cannot mount handle, or handle differently. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Roll back the files, and then copy those of another sandbox, if a descriptor of it is given. */
static int do_replace_files(const struct message *m) {
    if (roll_back(false)) return -1;
    return m->count ? copy_paths(m->fds[0], json_get(m->body, "paths")) : 0;
}

/* The supervisor has the user of the commands, which can lower the priority of all its processes. */
static struct { int cpu; long disk; } initial_priority;

static int read_cpu_priority(void) { return getpriority(PRIO_PROCESS, 0); }

static long read_disk_priority(void) { return syscall(SYS_ioprio_get, 1, 0); }

void record_priority(void) {
    initial_priority.cpu = read_cpu_priority();
    initial_priority.disk = read_disk_priority();
}

/* Refuse if the network was used, the priority lowered, or a large directory changed, because the
   container keeps the traces. */
static int do_recycle(void) {
    if (end_all_processes()) return -1;
    if (sandbox.isolation.own_network && was_network_used(&sandbox.isolation))
        return errno = EBUSY, fail("the network of the sandbox was used");
    if (read_cpu_priority() != initial_priority.cpu
        || read_disk_priority() != initial_priority.disk)
        return errno = EBUSY, fail("the priority of the sandbox was lowered");
    if (!sandbox.in_chroot && !sandbox.in_domain && clear_ipc()) return -1;  /* there it is forbidden */
    return roll_back(true);
}

/* Root may enter / with any mode; the supervisor needs the owner's permission. */
static void make_root_accessible(void) {
    struct stat info;
    if (!fstat(sandbox.root, &info) && (info.st_mode & 0700) != 0700)
        fchmod(sandbox.root, (info.st_mode | 0700) & 07777);
}

int handle_scanned_request(const char *operation, const struct message *m, struct text *out,
                             int *result_fd) {
    static const char *const refused[] = {"checkpoint", "restore_checkpoint", "seal"};
    make_root_accessible();
    if (!strcmp(operation, "size")) return write_size(out);
    if (!strcmp(operation, "touched_paths")) return write_touched_paths(out);
    if (!strcmp(operation, "replace_files")) return do_replace_files(m);
    if (!strcmp(operation, "recycle")) return do_recycle();
    if (!strcmp(operation, "upper"))
        return (*result_fd = fcntl(sandbox.root, F_DUPFD_CLOEXEC, 0)) < 0 ? -1 : 0;
    if (!strcmp(operation, "storage_limit")) {
        const char *limit = sandbox.in_domain ? take_process_limit() : "";
        return append_format(out, ", \"limit\": \"%s\"", *limit ? limit : take_storage_limit()), 0;
    }
    if (!strcmp(operation, "script") && sandbox.in_chroot) return write_script(m, result_fd);
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(operation, refused[i]))
            return errno = EOPNOTSUPP, fail("%s in a container", operation);
    if (!strcmp(operation, "spawn")) start_disk_checks();
    return NOT_HANDLED;
}

/* End all processes, and exit when they are gone. */
void end_container(void) {
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
    _exit(0);
}

/* Set the limit of open files that a command begins with. The supervisor has a higher one,
   because the kernel refuses to pass more descriptors than the sender may open, counted for the
   user over all sandboxes. `limit_child_files` takes the higher limit from a started command. */
void set_command_file_limit(bool only) {
    rlim_t limit = (rlim_t)json_number(json_get(sandbox.spec, "limits"), "open_files");
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now)) return;
    now.rlim_cur = only && limit < now.rlim_max ? limit : now.rlim_max;
    setrlimit(RLIMIT_NOFILE, &now);
}

void limit_child_files(pid_t pid) {
    struct rlimit now;
    if (prlimit(pid, RLIMIT_NOFILE, NULL, &now)) return;  /* it has ended */
    rlim_t limit = (rlim_t)json_number(json_get(sandbox.spec, "limits"), "open_files");
    if (now.rlim_max > limit) now.rlim_max = limit;
    if (now.rlim_cur > limit) now.rlim_cur = limit;
    prlimit(pid, RLIMIT_NOFILE, &now, NULL);
}
