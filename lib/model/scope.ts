/**
 * Scopes: what an agent token is limited to. A scope is a level, alone or behind the thing that it is about:
 * `deploy`, `org:acme:read`, `project:acme/shop:deploy`, `env:acme/shop/pr-7:admin`.
 */
import type { Role } from './credential.ts'
import { ID_PATTERN } from './identifiers.ts'

/** Nested like roles, and the words of API keys too: each level may do what the ones before it may. */
export const LEVELS = ['read', 'deploy', 'admin'] as const
export type Level = (typeof LEVELS)[number]

const ROLE_OF: Readonly<Record<Level, Role>> = { read: 'viewer', deploy: 'developer', admin: 'admin' }
const LEVEL_OF: Readonly<Record<Role, Level | undefined>> = {
  viewer: 'read',
  developer: 'deploy',
  admin: 'admin',
  owner: undefined,
}

/** The role that a level reaches at most. */
export const roleOfLevel = (level: Level): Role => ROLE_OF[level]

/** The level that a role's calls need; undefined: no level reaches them, they are for people. */
export const levelOfRole = (role: Role): Level | undefined => LEVEL_OF[role]

/** Something in an organization: itself, one of its projects, an environment of one. */
export interface Target {
  readonly organizationId: string
  readonly projectId?: string | undefined
  readonly environmentId?: string | undefined
}

/** A level, and what it is about; without an organization everything that the token's user may reach. */
export interface Scope extends Partial<Target> {
  readonly level: Level
}

const KINDS = ['org', 'project', 'env'] as const

const isLevel = (word: string | undefined): word is Level => (LEVELS as readonly (string | undefined)[]).includes(word)

/** The scope that a text says; undefined: it is none. */
export const parseScope = (text: string): Scope | undefined => {
  const parts = text.split(':')
  if (parts.length === 1) return isLevel(parts[0]) ? { level: parts[0] } : undefined
  const [kind, place = '', level] = parts
  const ids = place.split('/')
  const depth = (KINDS as readonly (string | undefined)[]).indexOf(kind) + 1
  if (parts.length !== 3 || !isLevel(level) || ids.length !== depth || !ids.every(id => ID_PATTERN.test(id)))
    return undefined
  const [organizationId, projectId, environmentId] = ids
  return {
    level,
    ...(organizationId === undefined ? {} : { organizationId }),
    ...(projectId === undefined ? {} : { projectId }),
    ...(environmentId === undefined ? {} : { environmentId }),
  }
}

/** Whether a target lies within what a scope is about. */
export const isWithin = (target: Target, scope: Scope): boolean =>
  (scope.organizationId === undefined || scope.organizationId === target.organizationId) &&
  (scope.projectId === undefined || scope.projectId === target.projectId) &&
  (scope.environmentId === undefined || scope.environmentId === target.environmentId)

/** Whether a scope gives nothing that another one does not. */
export const isNarrower = (scope: Scope, than: Scope): boolean =>
  LEVELS.indexOf(scope.level) <= LEVELS.indexOf(than.level) &&
  (than.organizationId === undefined || than.organizationId === scope.organizationId) &&
  (than.projectId === undefined || than.projectId === scope.projectId) &&
  (than.environmentId === undefined || than.environmentId === scope.environmentId)

/** The organizations that scopes name; undefined: one of them names none, so that it is about all. */
export const organizationsOf = (scopes: readonly Scope[]): readonly string[] | undefined => {
  const named = scopes.map(scope => scope.organizationId)
  return named.includes(undefined) ? undefined : [...new Set(named.filter(id => id !== undefined))]
}

/** The text of the narrowest scope that gives a level on a target. */
export const scopeText = (target: Target, level: Level): string => {
  const ids = [target.organizationId, target.projectId, target.environmentId].filter(id => id !== undefined)
  return `${KINDS[ids.length - 1] ?? 'org'}:${ids.join('/')}:${level}`
}
