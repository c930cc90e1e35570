// The URL of a call.
/** A path with its ids, and its query; arrays repeat their parameter. */
export function urlOf(baseUrl, path, ids = {}, query = {}) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(idOf(ids[name])));
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value === undefined || value === null)
            continue;
        for (const each of Array.isArray(value) ? value : [value])
            search.append(name, String(each));
    }
    const text = search.toString();
    return baseUrl + filled + (text === "" ? "" : `?${text}`);
}
/** An id; one that would lead to another path is refused. */
function idOf(value) {
    const id = String(value ?? "");
    if (id === "" || id === "." || id === "..")
        throw new TypeError(`an id is not ${JSON.stringify(id)}`);
    return id;
}
