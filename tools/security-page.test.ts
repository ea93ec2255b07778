import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SIGN_IN_ATTEMPTS } from '../apiserver/commands/login/check-password.ts'
import { apiServerConfig } from '../apiserver/config/config.ts'
import { apiServerEnv } from '../apiserver/config/env.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const page = read('docs/security.md')
/** From its heading to the next of the same rank. */
const asvs = page.slice(page.indexOf('## OWASP ASVS'), page.indexOf('\n## ', page.indexOf('## OWASP ASVS') + 1))

/** How many requirements of levels 1 and 2 each section of ASVS 5.0.0 has; they are numbered from 1. */
const SECTIONS =
  '1.1:2 1.2:9 1.3:11 1.4:3 1.5:2 2.1:3 2.2:3 2.3:4 2.4:1 3.2:2 3.3:4 3.4:6 3.5:5 3.7:2 4.1:3 4.2:1 4.3:2 4.4:4 5.1:1 5.2:3 5.3:2 5.4:3 6.1:3 6.2:12 6.3:4 6.4:4 6.5:5 6.6:3 6.8:4 7.1:3 7.2:4 7.3:2 7.4:5 7.5:2 7.6:2 8.1:2 8.2:3 8.3:1 8.4:1 9.1:3 9.2:4 10.1:2 10.2:2 10.3:4 10.4:11 10.5:5 10.6:2 10.7:3 11.1:2 11.2:3 11.3:3 11.4:4 11.5:1 11.6:1 12.1:3 12.2:2 12.3:4 13.1:1 13.2:5 13.3:2 13.4:5 14.1:2 14.2:4 14.3:3 15.1:3 15.2:3 15.3:7 16.1:1 16.2:5 16.3:4 16.4:3 16.5:3 17.1:1 17.2:4 17.3:2'

const REQUIRED = SECTIONS.split(' ').flatMap(section => {
  const [number = '', count] = section.split(':')
  return Array.from({ length: Number(count) }, (_, at) => `${number}.${at + 1}`)
})

/** Rows of what is shown, as [requirements, tests]. */
const rows = [...asvs.matchAll(/^\| (\d[^|]*) \|[^|]*\| (`[^`]+`: “.+”) \|$/gm)].map(
  ([, requirements = '', tests = '']) => ({
    requirements,
    tests: [...tests.matchAll(/`([^`]+)`: “(.+?)”(?:; |$)/g)].map(([, file = '', title = '']) => ({ file, title })),
  }),
)
/** Of what is not met. */
const deviations = asvs.slice(asvs.indexOf('### Deviations'), asvs.indexOf('### Not applicable'))

/** The titles of the tests of a file, and of groups of them, as they are written there. */
const titlesIn = (text: string): readonly string[] =>
  [...text.matchAll(/\b(?:it|describe)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)].map(([, , title = '']) => title)

/** A level 3 that says so is none that is asked for. */
const numbersIn = (cell: string): readonly string[] => cell.split(', ').map(each => each.replace(' (level 3)', ''))
const asNumber = (requirement: string): number =>
  requirement.split('.').reduce((sum, part) => sum * 100 + Number(part), 0)

describe('the page of what is shown', () => {
  it('names every requirement of levels 1 and 2 once', () => {
    // A heading's version is no requirement, and one of level 3 says so.
    const named = [...asvs.matchAll(/(?<![\d.])\d+\.\d+\.\d+(?! \(level 3\))\b/g)].map(([number]) => number)
    assert.deepEqual(
      named.filter((number, at) => named.indexOf(number) !== at),
      [],
      'more than once',
    )
    assert.deepEqual(
      REQUIRED.filter(number => !named.includes(number)),
      [],
      'missing',
    )
    assert.deepEqual(
      named.filter(number => !REQUIRED.includes(number)),
      [],
      'not of levels 1 and 2',
    )
  })

  it('has a row for each test that it names, and no row without one', () => {
    const lines = asvs
      .replace(deviations, '')
      .split('\n')
      .filter(line => /^\| \d/.test(line))
    assert.ok(rows.length > 90)
    assert.equal(rows.length, lines.length, 'a row that names no test')
  })

  for (const { requirements, tests } of rows)
    it(`shows ${requirements} by tests that are there, called so, and in order`, () => {
      const numbers = numbersIn(requirements).map(asNumber)
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b),
      )
      assert.ok(tests.length > 0)
      for (const { file, title } of tests)
        assert.ok(titlesIn(read(file)).includes(title), `${file} has no test called “${title}”`)
    })

  it('gives each deviation its reason', () => {
    const lines = deviations.split('\n').filter(line => /^\| \d/.test(line))
    assert.ok(lines.length > 5)
    for (const line of lines) {
      const [, requirements = '', what = '', why = ''] = line.split('|').map(cell => cell.trim())
      assert.ok(
        numbersIn(requirements).every(number => REQUIRED.includes(number)),
        line,
      )
      for (const cell of [what, why]) assert.ok(cell.split(' ').length > 3, `“${cell}” is no sentence: ${line}`)
    }
  })

  it('says how guessing is limited, with the figures in force', () => {
    const { maxFailures, lockoutSeconds } = apiServerConfig({}).login
    const minutes = (seconds: number): string => `${seconds / 60} minutes`
    const { most, windowSeconds } = SIGN_IN_ATTEMPTS
    for (const told of [
      `${maxFailures} in 15 minutes lock it for ${minutes(lockoutSeconds)}`,
      `| ${most} in ${minutes(windowSeconds)} |`,
    ])
      assert.ok(page.includes(told), told)
  })

  it('names every setting by which it calls somebody', () => {
    const calls = Object.keys(apiServerEnv.shape).filter(name =>
      /(?:ISSUER|INTROSPECTION|WEBHOOK)_URL$|_HOST$/.test(name),
    )
    assert.ok(calls.length >= 4)
    for (const name of [...calls, 'SERVICE_DATABASE_URL', 'SERVICE_STORE_URL'])
      assert.ok(page.includes(`\`${name}\``), name)
  })

  it('names no test file that is not there', () => {
    for (const [, file = ''] of page.matchAll(/`([\w./-]+\.test\.ts)`/g)) read(file)
  })
})
