#include <stdio.h>
#include <string.h>

int main(void) {
    static char field[102][104], next[102][104];
    int steps, rows = 0;
    if (scanf("%d", &steps) != 1) return 1;
    while (rows < 100 && scanf("%100s", field[rows + 1] + 1) == 1) rows++;
    int columns = strlen(field[1] + 1);
    while (steps--) {
        for (int y = 1; y <= rows; y++) {
            for (int x = 1; x <= columns; x++) {
                int near = 0;
                for (int dy = -1; dy <= 1; dy++)
                    for (int dx = -1; dx <= 1; dx++)
                        near += (dy || dx) && field[y + dy][x + dx] == '#';
                int lives = near == 3 || (near == 2 && field[y][x] == '#');
                next[y][x] = lives ? '#' : '.';
            }
        }
        memcpy(field, next, sizeof field);
    }
    for (int y = 1; y <= rows; y++) printf("%.*s\n", columns, field[y] + 1);
    return 0;
}
