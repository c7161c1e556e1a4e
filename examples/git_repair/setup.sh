set -e
export HOME=/root GIT_AUTHOR_DATE="2024-05-01T12:00:00Z" GIT_COMMITTER_DATE="2024-05-01T12:00:00Z"
git config --global user.name Dana
git config --global user.email dana@example.org
git config --global init.defaultBranch main
git init -q /repo && cd /repo
printf 'Shop\n====\nWe sell fruit.\n' > readme.txt && git add . && git commit -qm "Begin"
printf 'apple 3\npear 4\n' > prices.txt && git add . && git commit -qm "Add prices"
printf 'Open from nine to six.\n' > hours.txt && git add . && git commit -qm "Add hours"
