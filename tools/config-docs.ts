import type { z } from 'zod'

/** The variables of one program. */
export interface ConfigSection {
  readonly title: string
  readonly intro: string
  readonly schema: z.ZodObject
}

/** What holds when the variable is not set, as a reader writes it. */
const defaultOf = (field: z.ZodType): string => {
  const parsed = field.safeParse(undefined)
  if (!parsed.success) return 'required'
  if (parsed.data === undefined) return ''
  return `\`${typeof parsed.data === 'string' ? parsed.data : JSON.stringify(parsed.data)}\``
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const section = ({ title, intro, schema }: ConfigSection): string => {
  const rows = Object.entries(schema.shape).map(([name, field]) => {
    const { description } = field as z.ZodType
    if (description === undefined) throw new Error(`${name} has no description`)
    return `| \`${name}\` | ${cell(defaultOf(field as z.ZodType))} | ${cell(description)} |`
  })
  return [`## ${title}`, '', intro, '', '| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows, ''].join(
    '\n',
  )
}

/** docs/config.md: every variable of every program. @throws Error for one without a description */
export const renderConfigDocs = (sections: readonly ConfigSection[]): string =>
  [
    '# Configuration',
    '',
    'Everything is set by environment variables, read once at the start. Written by `make generate`; do not edit.',
    '',
    ...sections.map(section),
  ].join('\n')
