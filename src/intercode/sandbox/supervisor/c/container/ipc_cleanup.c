/* Removes what outlives the processes of a container besides files: System V memory, semaphores and
   queues, POSIX queues, and what lies in shared memory. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

enum sort { MEMORY, SEMAPHORES, QUEUES };

static int without(enum sort sort, int id) {
    int result = sort == MEMORY ? shmctl(id, IPC_RMID, NULL)
        : sort == SEMAPHORES ? semctl(id, 0, IPC_RMID) : msgctl(id, IPC_RMID, NULL);
    return result && errno != EINVAL && errno != EIDRM ? failed("object %d of System V", id) : 0;
}

static int without_all(enum sort sort, const char *list) {
    char *line = NULL;
    size_t room = 0;
    int id, result = 0;
    FILE *file = fopen(list, "re");
    if (!file) return errno == ENOENT ? 0 : failed("%s", list);  /* a kernel without them */
    while (!result && getline(&line, &room, file) > 0)
        if (sscanf(line, "%*d %d", &id) == 1) result = without(sort, id);
    free(line);
    fclose(file);
    return result;
}

/* Remove all that a directory of another mount holds. */
static int emptied(const char *path) {
    struct names names = {0};
    struct stat info;
    int result = 0, fd = open(path, DIRECTORY);
    if (fd < 0) return errno == ENOENT ? 0 : failed("%s", path);
    if (names_in(fd, &names)) result = failed("%s", path);
    for (size_t i = 0; !result && i < names.count; i++) {
        if (fstatat(fd, names.name[i], &info, AT_SYMLINK_NOFOLLOW)) continue;
        if (S_ISDIR(info.st_mode)) result = remove_tree(names.name[i], fd);
        else if (unlinkat(fd, names.name[i], 0)) result = failed("%s/%s", path, names.name[i]);
    }
    free_names(&names);
    close(fd);
    return result;
}

int clear_leftovers(void) {
    if (without_all(MEMORY, "/proc/sysvipc/shm") || without_all(SEMAPHORES, "/proc/sysvipc/sem")
        || without_all(QUEUES, "/proc/sysvipc/msg"))
        return -1;
    return emptied("/dev/shm") || emptied("/dev/mqueue") ? -1 : 0;
}
