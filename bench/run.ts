/** make bench: every measurement one after another, written to docs/benchmarks.md with machine and date. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs', 'benchmarks.md')

/** One script and what its figures mean. `table`: it prints Markdown; otherwise lines. */
const SECTIONS = [
  {
    title: 'A whole single box',
    script: 'single-box.ts',
    table: true,
    about:
      'Through the public API, databases on disk with every flush done; `ready` includes a proven sign-in. The client polls every 10 ms.',
  },
  {
    title: 'Server CPU of GET environment',
    script: 'get-environment.ts',
    table: false,
    about:
      'Against a bare express handler that sends the same row of the same select, in turns in one run. Aim: ratio ≤ 1.6. Credential and membership are one statement, the row a second; rate limits are off.',
  },
  {
    title: 'Mutations',
    script: 'mutation-rate.ts',
    table: false,
    about:
      'The createEnvironment command (idempotency key, work, stored answer, audit) against a bare transaction that writes the same rows, in turns, 16 at a time. Aim: ratio ≥ 0.5.',
  },
  {
    title: 'The embedded store',
    script: 'embedded-store.ts',
    table: false,
    about:
      'Writes and watch latency on a durable Postgres; `bare` is one updated row a commit. Commits of the store are serial by design (docs/adr/0004).',
  },
] as const

const measure = (section: (typeof SECTIONS)[number]): string => {
  console.log(`${section.title} …`)
  const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, section.script)], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 15 * 60_000,
  })
  if (status !== 0) throw new Error(`bench/${section.script} ended with ${String(status)}`)
  console.log(stdout)
  const body = section.table ? stdout.trim() : `\`\`\`\n${stdout.trim()}\n\`\`\``
  return `## ${section.title}\n\n${section.about}\n\n${body}\n`
}

const machine = (): string => {
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim()
  const model = cpus()[0]?.model ?? 'unknown CPU'
  const load = loadavg()[0]?.toFixed(1) ?? '?'
  return `${cpus().length} × ${model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux ${kernel}, Node ${process.version}, load before: ${load}`
}

const head = `# Benchmarks

Written by \`make bench\` (about ten minutes). Trust ratios more than absolute figures: the machine is shared.

${new Date().toISOString().slice(0, 10)} · ${machine()}
`
writeFileSync(PAGE, [head, ...SECTIONS.map(measure)].join('\n'))
console.log(`Written to ${PAGE}`)
