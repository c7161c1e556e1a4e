#include <stdio.h>
#include <string.h>

#define MOST 512
static char field[MOST][MOST];
static int steps[MOST * MOST], waiting[MOST * MOST];

int main(void) {
    int rows = 0, begin = -1, first = 0, last = 0;
    while (rows < MOST && scanf("%511s", field[rows]) == 1) {
        char *found = strchr(field[rows], 'A');
        if (found) begin = rows * MOST + (int)(found - field[rows]);
        rows++;
    }
    memset(steps, -1, sizeof steps);
    steps[begin] = 0;
    waiting[last++] = begin;
    while (first < last) {
        int here = waiting[first++], y = here / MOST, x = here % MOST;
        if (field[y][x] == 'B') {
            printf("%d\n", steps[here]);
            return 0;
        }
        static const int dy[] = {-1, 1, 0, 0}, dx[] = {0, 0, -1, 1};
        for (int i = 0; i < 4; i++) {
            int v = y + dy[i], u = x + dx[i], there = v * MOST + u;
            if (v < 0 || v >= rows || u < 0 || !field[v][u] || field[v][u] == '#') continue;
            if (steps[there] >= 0) continue;
            steps[there] = steps[here] + 1;
            waiting[last++] = there;
        }
    }
    puts("no way");
    return 0;
}
