const camelCase = (name: string): string => name.replace(/_[a-z]/g, match => match.charAt(1).toUpperCase())

/** The select list of a table's columns, each named as its TypeScript field: `e.environment_id as "environmentId"`. */
export const columns = (alias: string, names: readonly string[]): string =>
  names.map(name => `${alias}.${name} as "${camelCase(name)}"`).join(', ')
