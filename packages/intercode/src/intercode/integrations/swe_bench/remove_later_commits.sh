# Removes from every git repository of an image what is later than the task's commit.
#
# Arguments: the task's commit (may be empty) and the directory of the task's repository. Each
# repository keeps the commit that it has checked out, the branches and tags in the history of that
# or of the task's commit, and the objects that these need. The files of the task's repository stay
# as they are; another checkout of a later commit is set back to the task's commit. First all
# repositories are packed and then all old objects removed, as one may borrow from another.
set -u
base=$1 testbed=$2
command -v git > /dev/null || exit 0
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_NAMESPACE
unset GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR
export GIT_CONFIG_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1
export GIT_NO_LAZY_FETCH=1 GIT_LITERAL_PATHSPECS=1 LC_ALL=C
case $base in *[!0-9a-f]*) base= ;; esac
work=$(mktemp -d /dev/shm/later.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
printf '[safe]\n\tdirectory = *\n' > "$work/.gitconfig" # some versions ignore it after -c
export HOME="$work" XDG_CONFIG_HOME="$work" GIT_CONFIG_GLOBAL="$work/.gitconfig"

g() {
    git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 \
        -c core.logAllRefUpdates=false -c core.commitGraph=false -c submodule.recurse=false \
        -c filter.lfs.process= -c filter.lfs.smudge= -c filter.lfs.required=false "$@"
}
# A path as a line of a list, and the path of a line, with a dot after it.
line_of() { printf '%s' "$1" | tr '\n' '\001' && echo; }
path_of() { printf '%s' "$1" | tr '\001' '\n' && echo .; }
real_path() { cd "$1" && pwd -P | tr '\n' '\001' | sed 's/.$//' && echo; }
for_each_repository() {
    while IFS= read -r line; do
        folder=$(path_of "$line") && folder=${folder%.} && "$1"
    done < "$work/repositories"
}
commit() { g --git-dir="$1" rev-parse -q --verify "$2^{commit}" 2> /dev/null; }
is_in() { [ -n "$3" ] && g --git-dir="$1" merge-base --is-ancestor "$2" "$3" 2> /dev/null; }

# The checkout of a git directory, if it has one.
tree_of() {
    if [ -f "$1/gitdir" ]; then
        dirname "$(cat "$1/gitdir")"
    elif tree=$(g --git-dir="$1" config core.worktree); then
        (cd "$1" && cd "$tree" && pwd -P) 2> /dev/null
    elif [ "${1##*/}" = .git ]; then
        dirname "$1"
    else
        while IFS= read -r line; do
            tree=$(path_of "$line") tree=${tree%/.git.}/
            named=$(sed -n 's/^gitdir: //p' "$tree.git")
            [ "$(cd "$tree" && cd "$named" 2> /dev/null && pwd -P)" = "$1" ] && echo "$tree" && break
        done < "$work/links"
    fi
}

# Whether the task's repository has one commit over the task's, with just the files that it shows.
is_shown() {
    [ "$(g --git-dir="$1" rev-list --count "$2" "^$3")" = 1 ] || return 1
    (
        export GIT_INDEX_FILE="$work/index"
        rm -f "$GIT_INDEX_FILE"
        g --git-dir="$1" --work-tree="$testbed" read-tree "$2" &&
            g --git-dir="$1" --work-tree="$testbed" update-index -q --ignore-submodules --refresh
    ) > /dev/null
}

# Sets the index to HEAD, unless it has no other objects.
set_index() {
    [ -f "$1/index" ] || return 0
    if [ -z "$(commit "$1" HEAD)" ]; then
        rm -f "$1/index"
    elif ! g --git-dir="$1" diff-index --cached --quiet HEAD 2> /dev/null ||
        [ -n "$(g --git-dir="$1" ls-files --resolve-undo)" ]; then
        rm -f "$1/index"
        g --git-dir="$1" read-tree HEAD
        tree=$(tree_of "$1")
        [ -z "$tree" ] || g --git-dir="$1" --work-tree="$tree" update-index -q --refresh
    fi > /dev/null 2>&1
}

# Prints the paths, from here on, that no link leads elsewhere: rm would follow links of directories.
without_links='
root=${PWD%/} folder=none real=
for file; do
    path=$root/$file
    if [ "${path%/*}" != "$folder" ]; then
        folder=${path%/*}
        real=$(cd -P "$folder/" && [ "${PWD%/}" = "$folder" ] && echo real)
    fi
    [ -z "$real" ] || printf "%s\\0" "$path"
done
'

# Sets a checkout back to the task's commit if it is later.
set_back() {
    head=$(commit "$1" HEAD) known=$2
    if [ -z "$known" ] || { [ -n "$head" ] && { is_in "$1" "$head" "$known" ||
        is_in "$1" "$head" "$(commit "$1" "$start")"; }; }; then
        set_index "$1"
        return
    fi
    if [ "$1" = "$own" ]; then
        if [ -z "$head" ] || ! is_shown "$1" "$head" "$known"; then
            g --git-dir="$1" update-ref HEAD "$known"
        fi
        set_index "$1"
        return
    fi
    tree=$(tree_of "$1")
    if [ -f "$1/gitdir" ]; then
        [ ! -f "$tree/.git" ] || rm -rf "$tree"
        rm -rf "$1"
    elif [ -n "$tree" ] && [ -d "$tree" ] && [ ! "$tree" -ef "$testbed" ]; then
        {
            g --git-dir="$1" ls-files -z
            [ -z "$head" ] || g --git-dir="$1" ls-tree -r -z --name-only --full-tree "$head"
        } | (cd -P "$tree" && xargs -0 -r sh -c "$without_links" sh | xargs -0 -r rm -f) 2> /dev/null
        if ! g --git-dir="$1" --work-tree="$tree" reset -q --hard "$known" 2> /dev/null; then
            # a partial clone without the files of that commit
            g --git-dir="$1" update-ref HEAD "$known"
            rm -f "$1/index"
        fi
    else
        g --git-dir="$1" update-ref HEAD "$known"
        set_index "$1"
    fi
}

known_commit() { commit "$1" "${base:-HEAD-}" || commit "$1" "${start:-HEAD-}"; }

# Removes the references that are not in the history of a checkout or of the task's commit.
remove_references() {
    find "$1/" -name '*.lock' -type f ! -path '*/worktrees/*/locked' -exec rm -f {} +
    rm -f "$1/info/grafts"
    known=$(known_commit "$1")
    for admin in "$1"/worktrees/* "$1"; do # setting back the repository moves its branch
        [ -f "$admin/HEAD" ] && set_back "$admin" "$known"
    done
    : > "$work/kept"
    : > "$work/heads"
    for admin in "$1" "$1"/worktrees/*; do
        [ -f "$admin/HEAD" ] || continue
        g --git-dir="$admin" symbolic-ref -q HEAD >> "$work/kept"
        commit "$admin" HEAD >> "$work/heads"
    done
    { cat "$work/heads"; echo "$known"; } | sort -u | while read -r tip; do
        [ -z "$tip" ] || g --git-dir="$1" for-each-ref --merged="$tip" --format='%(refname)'
    done 2> /dev/null | grep -v '^refs/replace/' >> "$work/kept"
    g --git-dir="$1" for-each-ref --format='%(refname)' 2> /dev/null |
        grep -vxFf "$work/kept" | sed 's/^/delete /' |
        g --git-dir="$1" update-ref --no-deref --stdin || return 1
    g --git-dir="$1" reflog expire --expire=all --expire-unreachable=all --all 2> /dev/null
    g --git-dir="$1" pack-refs --all
}

# Packs what the references need into kept-objects, if the repository has more.
pack() {
    { cat "$work/heads"; g --git-dir="$1" for-each-ref --format='%(objectname)'; } |
        sort -u > "$work/tips"
    g --git-dir="$1" rev-list --objects --missing=allow-any --stdin \
        < "$work/tips" > "$work/listed" || return 1
    cut -d ' ' -f 1 "$work/listed" | sort -u - "$work/tips" > "$work/needed"
    g --git-dir="$1" cat-file --batch-all-objects --batch-check='%(objectname)' \
        2> /dev/null | sort -u > "$work/all"
    [ -n "$shared" ] || [ -n "$(comm -13 "$work/needed" "$work/all")" ] || return 0
    mkdir "$1/kept-objects" &&
        g --git-dir="$1" pack-objects -q --revs --missing=allow-any --delta-base-offset \
            "$1/kept-objects/pack" < "$work/tips" > /dev/null
}

# Removes what the present state of a git directory does not need: logs, messages, saved states.
remove_records() {
    for entry in "$1"/* "$1"/.[!.]*; do
        case ${entry##*/} in
        HEAD | config | config.worktree | description | hooks | index | sharedindex.* | info) ;;
        objects | packed-refs | reftable | shallow | modules | worktrees | branches) ;;
        commondir | gitdir | locked | lfs | annex) ;;
        refs) [ ! -f "$1/gitdir" ] || rm -rf "$entry" ;;
        *) rm -rf "$entry" ;;
        esac
    done
    rm -f "$1/info/refs"
}

# The files of a repository's stores of Git LFS.
lfs_files() {
    [ ! -d "$1/lfs" ] || find "$1/lfs/" -type f
    store=$(g --git-dir="$1" config lfs.storage) || return 0
    case $store in /*) ;; *) store=$1/$store ;; esac
    [ ! -d "$store/objects" ] || find "$store/objects/" -type f -path '*/objects/??/??/*'
}

own=$(cd "$testbed" 2> /dev/null && g rev-parse --absolute-git-dir 2> /dev/null)
start=
if [ -n "$own" ]; then
    own=$(cd "$own" && pwd -P)
    testbed=$(cd "$testbed" && pwd -P)
    [ -z "$(commit "$own" "${base:-HEAD-}")" ] && start=$(commit "$own" HEAD)
fi
list() {
    find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o "$@" \
        -exec sh -c 'printf %s "$1" | tr "\n" "\001"; echo' sh {} \; 2> /dev/null
}
list -name .git -type f > "$work/links"
list -name objects |
    while IFS= read -r line; do
        objects=$(path_of "${line%/objects}") objects=${objects%.}/objects folder=${objects%/objects}
        [ -d "$objects" ] || continue
        folder=$(path_of "$(real_path "$folder")") folder=${folder%.}
        case $folder in
        "$testbed"/*) # a repository that is a file of the task's commit
            g -C "$testbed" cat-file -e "HEAD:${folder#"$testbed"/}/HEAD" 2> /dev/null && continue
            ;;
        esac
        if [ -d "$folder/refs" ] && [ -f "$folder/HEAD" ] &&
            g --git-dir="$folder" rev-parse --git-dir > /dev/null 2>&1; then
            line_of "$folder"
        elif [ -d "$objects/pack" ] && [ -d "$objects/info" ]; then # of a broken repository
            line_of "$folder/objects" >> "$work/lenders"
            [ ! -f "$folder/HEAD" ] || remove_records "$folder"
        fi
    done > "$work/found"
common=
if [ -n "$own" ]; then # first, as the others are compared with it
    common=$(cd "$own" && cd "$(g --git-dir="$own" rev-parse --git-common-dir)" && pwd -P)
    line_of "$common" > "$work/repositories"
fi
grep -vxF "$(line_of "${common:-/}")" "$work/found" >> "$work/repositories"

shared=
note_shared() {
    [ -z "$(find "$folder/objects" -type l)" ] && [ ! -f "$folder/objects/info/alternates" ] || shared=1
}
for_each_repository note_shared
pack_needed() {
    if ! { remove_references "$folder" && pack "$folder"; }; then
        if [ "$folder" = "$common" ]; then
            echo "git cannot remove the later commits of $folder"
            exit 1
        fi
        rm -rf "$folder/kept-objects" # git cannot read it, but a program of the agent might
        mkdir "$folder/kept-objects"
    fi
    if [ "$folder" = "$common" ]; then start=$(commit "$own" HEAD); fi
}
for_each_repository pack_needed
note_lenders() {
    find "$folder/objects/" -name 'tmp_*' -type f -exec rm -f {} +
    if [ -f "$folder/objects/info/alternates" ]; then
        (
            cd "$folder/objects" || exit
            while IFS= read -r lender; do
                case $lender in
                '"'*) # quoted as in C
                    lender=$(printf '%b.' "$(printf '%s' "$lender" | sed 's/^"//; s/"$//; s/\\"/"/g')")
                    lender=${lender%.}
                    ;;
                esac
                lender=$(real_path "$lender" 2> /dev/null) && [ -n "$lender" ] || continue
                grep -qxF "${lender%/objects}" "$work/repositories" || printf '%s\n' "$lender"
            done < info/alternates
        ) >> "$work/lenders"
    fi
    if ls "$folder"/objects/pack/*.promisor > /dev/null 2>&1; then
        for pack in "$folder"/kept-objects/*.pack; do
            [ ! -f "$pack" ] || : > "${pack%.pack}.promisor"
        done
    fi
}
for_each_repository note_lenders
if [ -f "$work/lenders" ]; then
    while IFS= read -r line; do
        lender=$(path_of "$line") && find "${lender%.}" -type f -exec rm -f {} +
    done < "$work/lenders"
fi
empty_objects() {
    [ ! -d "$folder/kept-objects" ] || find "$folder/objects/" -mindepth 1 -delete
}
for_each_repository empty_objects
finish() {
    if [ -d "$folder/kept-objects" ]; then
        mkdir -p "$folder/objects/pack" "$folder/objects/info"
        find "$folder/kept-objects" -type f -exec mv {} "$folder/objects/pack/" \;
    fi
    remove_records "$folder"
    for admin in "$folder"/worktrees/*; do
        [ ! -d "$admin" ] || remove_records "$admin"
    done
}
for_each_repository finish

# Objects of Git LFS to which no file of a checkout points; several repositories may have one store.
note_lfs() {
    lfs_files "$folder" > "$work/files"
    [ -s "$work/files" ] || return 0
    for admin in "$folder" "$folder"/worktrees/*; do
        head=$(commit "$admin" HEAD) || continue
        g -c grep.lineNumber=false -c grep.column=false --git-dir="$admin" \
            grep --no-color -ahE '^oid sha256:[0-9a-f]{64}$' "$head" 2> /dev/null >> "$work/pointers"
        [ $? -le 1 ] || return
    done
    cat "$work/files" >> "$work/stored"
}
: > "$work/pointers"
: > "$work/stored"
for_each_repository note_lfs
while IFS= read -r file; do
    grep -qxF "oid sha256:${file##*/}" "$work/pointers" || rm -f "$file"
done < "$work/stored"

# Packs and bundles that belong to no repository and are no files of one, by device and inode, as a
# repository may have links to its own.
note_packs() { stat -L -c %d:%i "$folder"/objects/pack/*.pack 2> /dev/null; }
for_each_repository note_packs > "$work/packs"
is_tracked() {
    tree=$1
    while [ -n "$tree" ]; do
        tree=${tree%/*}
        [ -e "$tree/.git" ] && g -C "$tree/" cat-file -e "HEAD:${1#"$tree"/}" 2> /dev/null && return
    done
    return 1
}
list -type f \( -name '*.pack' -o -name '*.bundle' \) |
    while IFS= read -r line; do
        file=$(path_of "$line") file=${file%.}
        case $(head -c 8 "$file" | tr -d '\0') in PACK* | '# v'?' git') ;; *) continue ;; esac
        grep -qxF "$(stat -c %d:%i "$file")" "$work/packs" || is_tracked "$file" || rm -f "$file"
    done
if [ -n "$start" ] && [ -z "$(commit "$own" HEAD)" ]; then
    echo "the commit of $own is lost with the later ones"
    exit 1
fi
exit 0
