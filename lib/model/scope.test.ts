import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { ROLES } from './credential.ts'
import {
  isNarrower,
  isWithin,
  LEVELS,
  levelOfRole,
  organizationsOf,
  parseScope,
  roleOfLevel,
  type Scope,
  scopeText,
  type Target,
} from './scope.ts'

describe('a scope', () => {
  const said: readonly (readonly [string, Scope])[] = [
    ['read', { level: 'read' }],
    ['admin', { level: 'admin' }],
    ['org:acme:deploy', { organizationId: 'acme', level: 'deploy' }],
    ['project:acme/shop:read', { organizationId: 'acme', projectId: 'shop', level: 'read' }],
    ['env:acme/shop/pr-7:admin', { organizationId: 'acme', projectId: 'shop', environmentId: 'pr-7', level: 'admin' }],
  ]
  for (const [text, scope] of said) it(`${text} is understood`, () => assert.deepEqual(parseScope(text), scope))

  for (const text of [
    '',
    'write',
    'owner',
    'READ',
    'read ',
    'read:',
    ':read',
    'org:acme',
    'org:acme:owner',
    'org:acme:read:read',
    'org:acme/shop:read',
    'project:acme:read',
    'project:acme/shop/main:read',
    'env:acme/shop:read',
    'env:acme/shop/main/x:read',
    'org:*:read',
    'org::read',
    'project:acme/:read',
    'project:/shop:read',
    'org:Acme:read',
    'org:a:read',
    'org:acme:read\n',
    'toString',
    'constructor:acme:read',
  ])
    it(`${JSON.stringify(text)} is none`, () => assert.equal(parseScope(text), undefined))

  const place = fc.constantFrom('acme', 'beta')
  const target: fc.Arbitrary<Target> = fc.oneof(
    fc.record({ organizationId: place }),
    fc.record({ organizationId: place, projectId: fc.constantFrom('shop', 'blog') }),
    fc.record({
      organizationId: place,
      projectId: fc.constantFrom('shop', 'blog'),
      environmentId: fc.constantFrom('main', 'pr-7'),
    }),
  )

  it('covers what it names and everything in it, and nothing beside or above', () => {
    fc.assert(
      fc.property(target, target, fc.constantFrom(...LEVELS), (wide, asked, level) => {
        const scope = parseScope(scopeText(wide, level))
        assert.deepEqual(scope, { ...wide, level })
        const isPrefix = Object.entries(wide).every(([key, value]) => asked[key as keyof Target] === value)
        assert.equal(isWithin(asked, { ...wide, level }), isPrefix)
        assert.ok(isWithin(asked, { level }))
      }),
      { numRuns: sized(300, 5000) },
    )
  })

  it('is narrower than another when it reaches nothing that the other does not', () => {
    const levels = fc.constantFrom(...LEVELS)
    fc.assert(
      fc.property(target, target, target, levels, levels, levels, (one, other, asked, level, than, needed) => {
        const [a, b] = [parseScope(scopeText(one, level))!, parseScope(scopeText(other, than))!]
        const reaches = (scope: Scope): boolean =>
          isWithin(asked, scope) && LEVELS.indexOf(scope.level) >= LEVELS.indexOf(needed)
        if (isNarrower(a, b) && reaches(a)) assert.ok(reaches(b))
        assert.ok(isNarrower(a, a) && isNarrower(a, { level: 'admin' }))
        if (isWithin(one, b)) assert.equal(isNarrower(a, b), LEVELS.indexOf(level) <= LEVELS.indexOf(than))
        else assert.ok(!isNarrower(a, b))
      }),
      { numRuns: sized(300, 5000) },
    )
  })

  it('names organizations, or is about all of them', () => {
    const named = (...texts: string[]) => organizationsOf(texts.map(text => parseScope(text)!))
    assert.deepEqual(named('org:acme:read', 'project:acme/shop:read', 'org:beta:admin'), ['acme', 'beta'])
    assert.equal(named('org:acme:read', 'read'), undefined)
    assert.deepEqual(named(), [])
  })

  it('reaches the role that its level names, and never an owner’s', () => {
    assert.deepEqual(LEVELS.map(roleOfLevel), ['viewer', 'developer', 'admin'])
    assert.deepEqual(ROLES.map(levelOfRole), ['read', 'deploy', 'admin', undefined])
  })
})
