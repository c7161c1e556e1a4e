import java.util.ArrayList;
import java.util.Comparator;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;

public class Main {
    static class Team {
        final String name;
        int points, difference, goals;

        Team(String name) {
            this.name = name;
        }

        void play(int ours, int theirs) {
            points += ours > theirs ? 3 : ours == theirs ? 1 : 0;
            difference += ours - theirs;
            goals += ours;
        }
    }

    public static void main(String[] arguments) {
        Map<String, Team> teams = new TreeMap<>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            Team home = teams.computeIfAbsent(input.next(), Team::new);
            int a = input.nextInt(), b = input.nextInt();
            Team away = teams.computeIfAbsent(input.next(), Team::new);
            home.play(a, b);
            away.play(b, a);
        }
        var ranked = new ArrayList<>(teams.values());
        ranked.sort(Comparator.comparingInt((Team t) -> -t.points)
            .thenComparingInt(t -> -t.difference)
            .thenComparingInt(t -> -t.goals));
        for (Team t : ranked) {
            System.out.println(t.name + " " + t.points + " " + t.difference + " " + t.goals);
        }
    }
}
