/**
 * make bench: every measurement one after another, written to docs/benchmarks.md with machine and date. Arguments are words of
 * titles, to measure some sections only; the others stay as they are.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { SECTIONS, type Section } from './sections.ts'

const ROOT = join(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs', 'benchmarks.md')

const machine = (): string => {
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim()
  const model = cpus()[0]?.model ?? 'unknown CPU'
  const load = loadavg()[0]?.toFixed(1) ?? '?'
  return `${cpus().length} × ${model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux ${kernel}, Node ${process.version}, load before: ${load}`
}

const measure = (section: Section): string => {
  console.log(`${section.title} …`)
  const when = `${new Date().toISOString().slice(0, 10)} · ${machine()}`
  const command = [join(import.meta.dirname, section.script), ...(section.args ?? [])]
  const { status, stdout } = spawnSync(process.execPath, command, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 2 * 3_600_000,
  })
  if (status !== 0) throw new Error(`bench/${section.script} ended with ${String(status)}`)
  console.log(stdout)
  const body = section.table ? stdout.trim() : `\`\`\`\n${stdout.trim()}\n\`\`\``
  return `## ${section.title}\n\n${section.about}\n\n${when}\n\n${body}\n`
}

/** What the page says of a section already. */
const before = (page: string, { title }: Section): string | undefined => {
  const from = page.indexOf(`## ${title}\n`)
  if (from < 0) return undefined
  const to = page.indexOf('\n## ', from + 1)
  return `${page.slice(from, to < 0 ? undefined : to).trim()}\n`
}

const HEAD = `# Benchmarks

Written by \`make bench\` (about an hour, half of it for 2,000 environments on a cluster; with words of titles, as in \`node bench/run.ts Images\`, some sections only). Trust ratios more than absolute figures: the machine is shared.
`

const words = process.argv.slice(2)
const isAsked = ({ title }: Section): boolean => words.length === 0 || words.some(word => title.includes(word))
for (const section of SECTIONS.filter(isAsked)) {
  const missing = section.missing?.()
  if (missing !== undefined) {
    console.log(`SKIPPED: ${section.title}: ${missing}`)
    continue
  }
  const measured = measure(section)
  // Written at once: what is measured next may fail.
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
  const texts = SECTIONS.map(each => (each === section ? measured : before(page, each)))
  writeFileSync(PAGE, [HEAD, ...texts.filter(text => text !== undefined)].join('\n'))
}
console.log(`Written to ${PAGE}`)
