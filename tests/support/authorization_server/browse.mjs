// A person at a real browser: signs in at the address that it is started with, agrees, and notes the page at the end.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, program, notes, address] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)('playwright-core');
const browser = await chromium.launch({
  executablePath: program,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-proxy-server'],
});
try {
  const page = await browser.newPage();
  await page.goto(address);
  await page.fill('input[name=login]', 'ann');
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.waitForSelector('text=Authorize');
  await page.click('button[type=submit]');
  await page.waitForURL('http://127.0.0.1:*/callback?*');
  appendFileSync(notes, `${await page.title()}\n${await page.innerText('body')}\n`);
} finally {
  await browser.close();
}
