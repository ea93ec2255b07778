import assert from 'node:assert/strict'
import { linksOf } from './links.ts'

const CONSOLE = 'https://console.example.com'
const PUBLIC = 'https://db.example.com'
const HERE = 'http://127.0.0.1:8080'

describe('linksOf', () => {
  const rows: [
    why: string,
    consoleUrl: string,
    publicUrl: string,
    console: string | undefined,
    page: string,
    call: string,
  ][] = [
    ['each has its own place', CONSOLE, PUBLIC, CONSOLE, CONSOLE, PUBLIC],
    ['a console alone says nothing of calls', CONSOLE, '', CONSOLE, CONSOLE, HERE],
    ['the public URL serves pages too', '', PUBLIC, PUBLIC, PUBLIC, PUBLIC],
    ['nobody said anything: where we listen', '', '', undefined, HERE, HERE],
  ]
  for (const [why, consoleUrl, publicUrl, console, page, call] of rows)
    it(why, () => {
      const links = linksOf({ consoleUrl, publicUrl }, () => HERE)
      assert.deepEqual([links.console, links.page('/p'), links.call('/c')], [console, `${page}/p`, `${call}/c`])
    })
})
