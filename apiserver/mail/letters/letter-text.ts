/** One letter as text and as HTML, from the same words: plain, readable with everything switched off. */

/** What a letter says. */
export interface LetterWords {
  readonly subject: string
  /** In order; texts only, never HTML. */
  readonly paragraphs: readonly string[]
  /** The one thing to do, after the paragraphs. */
  readonly link?: { readonly label: string; readonly url: string }
  /** A code to be typed, after the link. */
  readonly code?: { readonly label: string; readonly code: string }
  /** What to know beside, last. */
  readonly notes: readonly string[]
}

export interface WrittenLetter {
  readonly subject: string
  readonly text: string
  readonly html: string
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, character => ESCAPES[character] ?? '')

const text = ({ paragraphs, link, code, notes }: LetterWords): string =>
  [
    ...paragraphs,
    ...(link === undefined ? [] : [`${link.label}:\n${link.url}`]),
    ...(code === undefined ? [] : [`${code.label}: ${code.code}`]),
    ...notes,
  ].join('\n\n')

const FONT = 'font-family:Arial,Helvetica,sans-serif;font-size:16px;line-height:1.5;color:#1a1a1a'

const html = ({ subject, paragraphs, link, code, notes }: LetterWords): string => {
  const paragraph = (content: string): string => `<p style="margin:0 0 16px">${content}</p>`
  const parts = [
    ...paragraphs.map(each => paragraph(escaped(each))),
    ...(link === undefined
      ? []
      : [
          paragraph(`<a href="${escaped(link.url)}" style="color:#0b57d0;font-weight:bold">${escaped(link.label)}</a>`),
          paragraph(`If the link does not open, copy this address:<br>${escaped(link.url)}`),
        ]),
    ...(code === undefined
      ? []
      : [paragraph(`${escaped(code.label)}: <strong style="font-size:20px">${escaped(code.code)}</strong>`)]),
    ...notes.map(each => paragraph(escaped(each))),
  ]
  return [
    '<!doctype html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(subject)}</title></head>`,
    `<body style="margin:0;padding:24px;background:#ffffff;${FONT}">`,
    '<main style="max-width:560px">',
    ...parts,
    '</main>',
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

/** Puts the words into both forms. */
export const letterText = (words: LetterWords): WrittenLetter => ({
  subject: words.subject,
  text: `${text(words)}\n`,
  html: html(words),
})
