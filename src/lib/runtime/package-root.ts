import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The folder that contains `package.json` and `bin/`. The search goes upward from this file,
 * because source files are nested deeper than the files of an installed package.
 */
export const PACKAGE_ROOT = rootAbove(import.meta.dirname)

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder
  const above = dirname(folder)
  if (above === folder) throw new Error(`no package.json above ${import.meta.dirname}`)
  return rootAbove(above)
}
