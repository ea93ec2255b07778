import assert from 'node:assert/strict'
import { LETTER_KINDS } from '../../../lib/model/letter.ts'
import { foreignName } from './foreign-name.ts'
import { writeLetter } from './write-letter.ts'

const PARAMETERS = {
  token: 'svc_mgl_0123456789',
  code: '042137',
  organization_name: 'Ada & <b>Söhne</b>',
  organization_id: 'acme',
  inviter_name: 'Grace "Hopper"',
  role: 'developer',
}
const CONSOLE = 'https://console.example.com'

describe('a letter', () => {
  for (const kind of LETTER_KINDS)
    describe(kind, () => {
      const { subject, text, html } = writeLetter(kind, PARAMETERS, CONSOLE)

      it('links to the console and nowhere else, and loads nothing', () => {
        const addresses = [...`${text} ${html}`.matchAll(/https?:\/\/[^\s"<]+/g)].map(([address]) => address)
        assert.ok(addresses.length >= 2)
        for (const address of addresses) assert.ok(address.startsWith(`${CONSOLE}/`), address)
        assert.ok(!/<(img|script|style|link|iframe|form)\b|url\(|@import| on\w+=/i.test(html))
      })

      it('says the same as text and as HTML, with a language, a title and its one link written out', () => {
        assert.match(html, /^<!doctype html>\n<html lang="en">\n/)
        const title = /<title>([^<]*)<\/title>/.exec(html)?.[1] ?? ''
        const plain = (markup: string): string =>
          markup
            .replaceAll(/<[^>]+>/g, ' ')
            .replaceAll('&amp;', '&')
            .replaceAll('&lt;', '<')
            .replaceAll('&gt;', '>')
            .replaceAll('&quot;', '"')
            .replaceAll('&#39;', "'")
        assert.equal(plain(title), subject)
        const words = (from: string): string[] => from.split(/\s+/).filter(each => each !== '')
        const inHtml = new Set(words(plain(html)))
        for (const each of words(text)) assert.ok(inHtml.has(each) || inHtml.has(each.replace(/:$/, '')), each)
        assert.equal([...html.matchAll(/<a /g)].length, 1)
      })

      it('has a subject without what is secret', () => {
        assert.ok(!subject.includes('svc_') && !subject.includes('042137') && !/[\r\n]/.test(subject))
      })
    })

  it('escapes what others chose', () => {
    const { html, text } = writeLetter('invitation', PARAMETERS, CONSOLE)
    assert.ok(html.includes('Ada &amp; &lt;b&gt;Söhne&lt;/b&gt;') && !html.includes('<b>'))
    assert.ok(text.includes('“Ada & <b>Söhne</b>”, as developer'))
  })

  it('is not written without what it needs', () => {
    assert.throws(() => writeLetter('password_reset', {}, CONSOLE), TypeError)
  })

  const names: readonly (readonly [name: string, shown: string, why: string])[] = [
    ['Acme', 'Acme', 'a name'],
    ['Müller & Söhne', 'Müller & Söhne', 'any script'],
    ['  spaces  ', 'spaces', 'trimmed'],
    ['a\r\nBcc: eve', 'a Bcc: eve', 'one line'],
    ['\u202egnp.exe', 'otherwise', 'no turned direction, and what is left looks like an address'],
    ['x'.repeat(80), 'x'.repeat(60), 'short'],
    ['Win at https://evil.example', 'otherwise', 'no link'],
    ['www.evil', 'otherwise', 'no link'],
    ['evil.example', 'otherwise', 'mail programs make a link of it'],
    ['pay@evil', 'otherwise', 'nor of an address'],
    ['', 'otherwise', 'nothing'],
    ['\u200b\u0000', 'otherwise', 'nothing to be seen'],
  ]
  for (const [name, shown, why] of names)
    it(`shows a name that is ${JSON.stringify(name.slice(0, 30))}: ${why}`, () => {
      assert.equal(foreignName(name, 'otherwise'), shown)
    })
})
