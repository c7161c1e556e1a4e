#include <stdio.h>

int main(void) {
    static int table[200][200];
    int rows, columns;
    if (scanf("%d %d", &rows, &columns) != 2) return 1;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            if (scanf("%d", &table[y][x]) != 1) return 1;
    int top = 0, bottom = rows - 1, left = 0, right = columns - 1;
    const char *between = "";
#define SHOW(y, x) (printf("%s%d", between, table[y][x]), between = " ")
    while (top <= bottom && left <= right) {
        for (int x = left; x <= right; x++) SHOW(top, x);
        for (int y = top + 1; y <= bottom; y++) SHOW(y, right);
        if (top < bottom)
            for (int x = right - 1; x >= left; x--) SHOW(bottom, x);
        if (left < right)
            for (int y = bottom - 1; y > top; y--) SHOW(y, left);
        top++, bottom--, left++, right--;
    }
    putchar('\n');
    return 0;
}
