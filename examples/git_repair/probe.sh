cd /repo || exit
printf '[core]\nrepositoryformatversion = 0\n' > .git/config   # removes what could run the
rm -rf .git/hooks .git/info                                     # agent's code (this is a copy)
git fsck --no-dangling > /dev/null 2>&1 && echo "sound"
echo "on $(git symbolic-ref HEAD 2>&1)"
echo "left over: $(git status --porcelain 2>&1)"
git for-each-ref refs/heads refs/tags --format='%(refname)' | while read -r name; do
  echo "$name: $(git log --format=%T "$name" | tr '\n' ' ')"   # the files of each commit, as hashes
done
