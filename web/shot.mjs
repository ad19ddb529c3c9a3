import { chromium } from "playwright-core";
const [,, file, out, w=1280, h=800, dark, ...actions] = process.argv;
const b = await chromium.launch({executablePath:"/usr/bin/chromium", args:["--no-sandbox","--disable-gpu","--no-first-run","--disable-background-networking","--disable-component-update","--disable-sync","--disable-quic"]});
const p = await b.newPage({viewport:{width:+w,height:+h}, colorScheme: dark==="dark"?"dark":"light"});
p.on("console", m=>console.log("console:", m.text())); p.on("pageerror", e=>console.log("error:", e.stack));
p.on("request", r=>{ if(!r.url().startsWith("file:")) console.log("request", r.url().slice(0,80)); });
const t=Date.now(); await p.goto("file://"+file); await p.waitForFunction(()=>window.gradscope); await p.evaluate(()=>new Promise(r=>requestAnimationFrame(()=>requestAnimationFrame(r)))); console.log("first view ms", Date.now()-t);
for (const a of actions) { if (a.startsWith("js:")) console.log(await p.evaluate(a.slice(3))); else if (a.startsWith("type:")) await p.keyboard.type(a.slice(5)); else await p.keyboard.press(a); await p.waitForTimeout(150); }
await p.screenshot({path: out}); await b.close();
