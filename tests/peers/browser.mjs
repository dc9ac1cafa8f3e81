// A user with a browser, without a screen: opens a page, presses the button of each form, and follows every redirect.
//
//     node browser.mjs URL ANSWER CODE
//
// ANSWER is `yes` to give consent, `no` to deny it, or `copy` to give it, but print the last address in place of opening
// it. CODE is entered where a page asks for one.
//
// The last address is the one of this machine that the client listens at: its path is /callback.

const [start, answer, code] = process.argv.slice(2);
let isEntered = false;
const cookies = new Map();
let request = { url: start, method: "GET" };
for (let step = 0; step < 20; step += 1) {
    const { pathname } = new URL(request.url);
    if (pathname === "/callback" && answer === "copy") {
        console.log(request.url);
        process.exit(0);
    }
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { cookie, ...(request.body && { "content-type": "application/x-www-form-urlencoded" }) };
    const response = await fetch(request.url, { ...request, headers, redirect: "manual" });
    for (const set of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
        cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location) {
        request = { url: new URL(location, request.url).href, method: "GET" };
        continue;
    }
    const page = await response.text();
    const form = /<form[^>]* method="post" action="([^"]+)"([^]*)/.exec(page);
    const asksForCode = Boolean(form?.[2].includes('type="text" name="user_code"'));
    if (!form || pathname === "/callback" || (asksForCode && isEntered)) {
        console.log(`${response.status} ${page}`);
        process.exit(response.ok && !asksForCode ? 0 : 1);
    }
    const hidden = form[2].matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g);
    const body = new URLSearchParams([...hidden].map(([, name, value]) => [name, value]));
    if (asksForCode) body.set("user_code", code);
    isEntered ||= asksForCode;
    body.set("answer", answer === "no" ? "no" : "yes");
    request = { url: new URL(form[1], request.url).href, method: "POST", body: body.toString() };
}
throw new Error("too many pages");
