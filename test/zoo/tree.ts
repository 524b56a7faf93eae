import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MarkedSource } from '../guards/markers.ts'
import { applyMutation, type Mutation, MutationMisfit } from '../guards/mutation.ts'

export const root = resolve(import.meta.dirname, '../..')
const PARTS = ['src', 'proto', 'test', 'package.json', 'tsconfig.json']

/**
 * Creates a copy of the source and its tests, which may be changed and run. @returns its folder.
 */
export function copyTree(within: string, name: string): string {
  const tree = join(within, name)
  mkdirSync(tree)
  for (const part of PARTS) cpSync(join(root, part), join(tree, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/**
 * @returns null when the bug was added, otherwise the reason why not; the tree is then unchanged.
 */
export function plant(tree: string, mutation: Mutation): string | null {
  try {
    const files = applyMutation(mutation, MarkedSource.read(tree))
    for (const { path, text } of files) writeFileSync(join(tree, path), text)
    return null
  } catch (error) {
    if (!(error instanceof MutationMisfit)) throw error
    return error.message
  }
}
